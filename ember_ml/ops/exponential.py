"""Elementwise exponentials, logarithms and roots."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import binary, unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = [
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "rsqrt",
    "sqrt",
]


@unary(rule=rules.FLOAT)
def exp(x: TensorLike) -> Tensor:
    """Return e to the power of x.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def exp2(x: TensorLike) -> Tensor:
    """Return 2 to the power of x.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def expm1(x: TensorLike) -> Tensor:
    """Return exp(x) - 1, accurate near zero.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def log(x: TensorLike) -> Tensor:
    """Return the natural logarithm; for complex x, with imaginary part in (-pi, pi].

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def log1p(x: TensorLike) -> Tensor:
    """Return log(1 + x), accurate near zero.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def log2(x: TensorLike) -> Tensor:
    """Return the logarithm to base 2.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def log10(x: TensorLike) -> Tensor:
    """Return the logarithm to base 10.

    Args:
        x: Input tensor.
    """


@binary(rule=rules.REAL_FLOAT)
def logaddexp(x: TensorLike, y: TensorLike) -> Tensor:
    """Return log(exp(x) + exp(y)) without overflow.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary(rule=rules.REAL_FLOAT)
def logaddexp2(x: TensorLike, y: TensorLike) -> Tensor:
    """Return log2(2**x + 2**y) without overflow.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@unary(rule=rules.FLOAT)
def sqrt(x: TensorLike) -> Tensor:
    """Return the square root; for complex x, the root with nonnegative real part.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def rsqrt(x: TensorLike) -> Tensor:
    """Return 1 / sqrt(x).

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL_FLOAT)
def cbrt(x: TensorLike) -> Tensor:
    """Return the real cube root.

    Args:
        x: Input tensor.
    """
