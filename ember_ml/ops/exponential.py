"""Exponentials, logarithms and roots, element by element."""

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
    """e to the power of x."""


@unary(rule=rules.FLOAT)
def exp2(x: TensorLike) -> Tensor:
    """2 to the power of x."""


@unary(rule=rules.FLOAT)
def expm1(x: TensorLike) -> Tensor:
    """exp(x) - 1, exact near zero."""


@unary(rule=rules.FLOAT)
def log(x: TensorLike) -> Tensor:
    """The natural logarithm; of a complex number the one with the imaginary part in (-pi, pi]."""


@unary(rule=rules.FLOAT)
def log1p(x: TensorLike) -> Tensor:
    """log(1 + x), exact near zero."""


@unary(rule=rules.FLOAT)
def log2(x: TensorLike) -> Tensor:
    """The logarithm to the base 2."""


@unary(rule=rules.FLOAT)
def log10(x: TensorLike) -> Tensor:
    """The logarithm to the base 10."""


@binary(rule=rules.REAL_FLOAT)
def logaddexp(x: TensorLike, y: TensorLike) -> Tensor:
    """log(exp(x) + exp(y)), without overflow."""


@binary(rule=rules.REAL_FLOAT)
def logaddexp2(x: TensorLike, y: TensorLike) -> Tensor:
    """log2(2**x + 2**y), without overflow."""


@unary(rule=rules.FLOAT)
def sqrt(x: TensorLike) -> Tensor:
    """The square root; of a complex number the one with a real part that is not negative."""


@unary(rule=rules.FLOAT)
def rsqrt(x: TensorLike) -> Tensor:
    """1 / sqrt(x)."""


@unary(rule=rules.REAL_FLOAT)
def cbrt(x: TensorLike) -> Tensor:
    """The real cube root."""
