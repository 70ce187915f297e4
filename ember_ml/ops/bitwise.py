"""Elementwise bit operations on integers and bools."""

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
    """Return the bitwise and of x and y; for bools, the logical and.

    Args:
        x: First integer or bool tensor.
        y: Second integer or bool tensor; broadcasts with x.
    """


@binary(rule=rules.BITWISE)
def bitwise_or(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the bitwise or of x and y; for bools, the logical or.

    Args:
        x: First integer or bool tensor.
        y: Second integer or bool tensor; broadcasts with x.
    """


@binary(rule=rules.BITWISE)
def bitwise_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the bitwise exclusive or of x and y; for bools, the logical exclusive or.

    Args:
        x: First integer or bool tensor.
        y: Second integer or bool tensor; broadcasts with x.
    """


@unary(rule=rules.BITWISE)
def bitwise_invert(x: TensorLike) -> Tensor:
    """Return the bitwise complement of x; for bools, the logical not.

    Args:
        x: Integer or bool tensor.
    """


@binary(rule=rules.INTEGER)
def bitwise_left_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x * 2**y, dropping the bits that do not fit the dtype.

    Args:
        x: Integer tensor.
        y: Number of bits, not negative; broadcasts with x.
    """


@binary(rule=rules.INTEGER)
def bitwise_right_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x / 2**y rounded down.

    Args:
        x: Integer tensor.
        y: Number of bits, not negative; broadcasts with x.
    """


@unary(rule=rules.INTEGER)
def count_ones(x: TensorLike) -> Tensor:
    """Return the number of set bits of x in two's complement, as int64.

    Args:
        x: Integer tensor.
    """


bitwise_not = bitwise_invert
left_shift = bitwise_left_shift
right_shift = bitwise_right_shift
