"""Operations on the bits of integers and on bools, element by element."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import binary, unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "count_ones",
    "left_shift",
    "right_shift",
]


@binary(rule=rules.BITWISE)
def bitwise_and(x: TensorLike, y: TensorLike) -> Tensor:
    """The bits that are set in both x and y."""


@binary(rule=rules.BITWISE)
def bitwise_or(x: TensorLike, y: TensorLike) -> Tensor:
    """The bits that are set in x or y."""


@binary(rule=rules.BITWISE)
def bitwise_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """The bits that are set in exactly one of x and y."""


@unary(rule=rules.BITWISE)
def bitwise_invert(x: TensorLike) -> Tensor:
    """The bits that are not set in x; logical not of bools."""


@binary(rule=rules.INTEGER)
def bitwise_left_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """x * 2**y, without the bits beyond the dtype's; y must not be negative."""


@binary(rule=rules.INTEGER)
def bitwise_right_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """x / 2**y rounded down; y must not be negative."""


@unary(rule=rules.INTEGER)
def count_ones(x: TensorLike) -> Tensor:
    """How many bits of x are set (two's complement), as int64."""


bitwise_not = bitwise_invert
left_shift = bitwise_left_shift
right_shift = bitwise_right_shift
