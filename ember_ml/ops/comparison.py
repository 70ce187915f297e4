"""Elementwise comparisons, predicates and logic."""

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
    """Return whether x == y, as bools.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary(rule=rules.ANY)
def not_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Return whether x != y, as bools.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary(rule=rules.ORDERED)
def less(x: TensorLike, y: TensorLike) -> Tensor:
    """Return whether x < y, as bools.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary(rule=rules.ORDERED)
def less_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Return whether x <= y, as bools.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary(rule=rules.ORDERED)
def greater(x: TensorLike, y: TensorLike) -> Tensor:
    """Return whether x > y, as bools.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary(rule=rules.ORDERED)
def greater_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Return whether x >= y, as bools.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@op
def isclose(
    x: TensorLike, y: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Return whether |x - y| <= atol + rtol * |y|; equal infinities are close.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x. The tolerance is relative to it.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether two NaNs are equal.
    """


@op
def allclose(
    x: TensorLike, y: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Return whether `isclose` holds for every element, as a 0-d bool tensor.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x. The tolerance is relative to it.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether two NaNs are equal.
    """


@op
def array_equal(x: TensorLike, y: TensorLike, equal_nan: bool = False) -> Tensor:
    """Return whether x and y have the same shape and elements, as a 0-d bool tensor.

    Args:
        x: First tensor.
        y: Second tensor.
        equal_nan: Whether two NaNs are equal.
    """


@op
def isin(x: TensorLike, elements: TensorLike, invert: bool = False) -> Tensor:
    """Return for each element of x whether it occurs in `elements`.

    Args:
        x: Input tensor.
        elements: Values to look for, in any shape.
        invert: Whether to return the negation.
    """


@unary
def isnan(x: TensorLike) -> Tensor:
    """Return whether x is NaN; for complex numbers, whether either part is.

    Args:
        x: Input tensor.
    """


@unary
def isinf(x: TensorLike) -> Tensor:
    """Return whether x is infinite; for complex numbers, whether either part is.

    Args:
        x: Input tensor.
    """


@unary
def isfinite(x: TensorLike) -> Tensor:
    """Return whether x is neither infinite nor NaN.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.ORDERED)
def isposinf(x: TensorLike) -> Tensor:
    """Return whether x is +infinity.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.ORDERED)
def isneginf(x: TensorLike) -> Tensor:
    """Return whether x is -infinity.

    Args:
        x: Input tensor.
    """


@unary
def isreal(x: TensorLike) -> Tensor:
    """Return whether the imaginary part of x is zero.

    Args:
        x: Input tensor.
    """


@binary(rule=rules.ANY)
def logical_and(x: TensorLike, y: TensorLike) -> Tensor:
    """Return whether x and y are both true.

    Args:
        x: First tensor; nonzero elements are true.
        y: Second tensor; nonzero elements are true. Broadcasts with x.
    """


@binary(rule=rules.ANY)
def logical_or(x: TensorLike, y: TensorLike) -> Tensor:
    """Return whether x or y is true.

    Args:
        x: First tensor; nonzero elements are true.
        y: Second tensor; nonzero elements are true. Broadcasts with x.
    """


@binary(rule=rules.ANY)
def logical_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """Return whether exactly one of x and y is true.

    Args:
        x: First tensor; nonzero elements are true.
        y: Second tensor; nonzero elements are true. Broadcasts with x.
    """


@unary
def logical_not(x: TensorLike) -> Tensor:
    """Return whether x is false.

    Args:
        x: Input tensor; nonzero elements are true.
    """
