"""Comparisons, tests and logic, element by element."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import binary, op, unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = [
    "allclose",
    "array_equal",
    "equal",
    "greater",
    "greater_equal",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
]


@binary(rule=rules.ANY)
def equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x == y."""


@binary(rule=rules.ANY)
def not_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x != y."""


@binary(rule=rules.ORDERED)
def less(x: TensorLike, y: TensorLike) -> Tensor:
    """x < y."""


@binary(rule=rules.ORDERED)
def less_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x <= y."""


@binary(rule=rules.ORDERED)
def greater(x: TensorLike, y: TensorLike) -> Tensor:
    """x > y."""


@binary(rule=rules.ORDERED)
def greater_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x >= y."""


@op
def isclose(
    x: TensorLike, y: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """|x - y| <= atol + rtol |y|; equal infinities are close, NaNs if `equal_nan`."""


@op
def allclose(
    x: TensorLike, y: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether isclose holds for every element: a 0-d bool tensor."""


@op
def array_equal(x: TensorLike, y: TensorLike, equal_nan: bool = False) -> Tensor:
    """Whether x and y have the same shape and elements: a 0-d bool tensor."""


@op
def isin(x: TensorLike, elements: TensorLike, invert: bool = False) -> Tensor:
    """For each element of x, whether it is among `elements`; with `invert`, whether it is not."""


@unary
def isnan(x: TensorLike) -> Tensor:
    """Whether x, or a part of it, is NaN."""


@unary
def isinf(x: TensorLike) -> Tensor:
    """Whether x, or a part of it, is infinite."""


@unary
def isfinite(x: TensorLike) -> Tensor:
    """Whether x is neither infinite nor NaN."""


@unary(rule=rules.ORDERED)
def isposinf(x: TensorLike) -> Tensor:
    """Whether x is +infinity."""


@unary(rule=rules.ORDERED)
def isneginf(x: TensorLike) -> Tensor:
    """Whether x is -infinity."""


@unary
def isreal(x: TensorLike) -> Tensor:
    """Whether the imaginary part of x is zero."""


@binary(rule=rules.ANY)
def logical_and(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x and y are both true, that is, not zero."""


@binary(rule=rules.ANY)
def logical_or(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x or y is true, that is, not zero."""


@binary(rule=rules.ANY)
def logical_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether exactly one of x and y is true, that is, not zero."""


@unary
def logical_not(x: TensorLike) -> Tensor:
    """Whether x is false, that is, zero."""
