"""Elementwise special functions."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import binary, op, unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = [
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "gammaln",
    "i0",
    "i1",
    "lgamma",
    "log_ndtr",
    "log_sigmoid",
    "logit",
    "logsigmoid",
    "ndtr",
    "ndtri",
    "polygamma",
    "sigmoid",
    "softplus",
    "xlog1py",
    "xlogy",
]


@unary(rule=rules.REAL_FLOAT)
def erf(x: TensorLike) -> Tensor:
    """Return the error function: 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL_FLOAT)
def erfc(x: TensorLike) -> Tensor:
    """Return 1 - erf(x), accurate where erf(x) is near 1.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL_FLOAT)
def erfinv(x: TensorLike) -> Tensor:
    """Return the inverse of `erf`.

    Args:
        x: Input tensor, with values in [-1, 1]; others return NaN.
    """


@unary(rule=rules.REAL_FLOAT)
def ndtr(x: TensorLike) -> Tensor:
    """Return the cumulative distribution function of the standard normal: erfc(-x / sqrt(2)) / 2.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL_FLOAT)
def log_ndtr(x: TensorLike) -> Tensor:
    """Return log(ndtr(x)), finite far into the lower tail.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL_FLOAT)
def ndtri(x: TensorLike) -> Tensor:
    """Return the inverse of `ndtr`: quantiles of the standard normal distribution.

    Args:
        x: Probabilities in [0, 1]; other values return NaN.
    """


@unary(rule=rules.REAL_FLOAT)
def lgamma(x: TensorLike) -> Tensor:
    """Return log(|gamma(x)|).

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL_FLOAT)
def digamma(x: TensorLike) -> Tensor:
    """Return the derivative of `lgamma`.

    Args:
        x: Input tensor.
    """


@op(rule=rules.REAL_FLOAT)
def polygamma(x: TensorLike, n: int = 1) -> Tensor:
    """Return the n-th derivative of `digamma`.

    Args:
        x: Input tensor.
        n: Order of the derivative, at least 0.
    """


@binary(rule=rules.REAL_FLOAT)
def betaln(x: TensorLike, y: TensorLike) -> Tensor:
    """Return log(|beta(x, y)|) = lgamma(x) + lgamma(y) - lgamma(x + y).

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@unary(rule=rules.REAL_FLOAT)
def i0(x: TensorLike) -> Tensor:
    """Return the modified Bessel function of the first kind, order 0.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL_FLOAT)
def i1(x: TensorLike) -> Tensor:
    """Return the modified Bessel function of the first kind, order 1: the derivative of `i0`.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL_FLOAT)
def entr(x: TensorLike) -> Tensor:
    """Return the entropy -x log(x): 0 at zero, -inf below.

    Args:
        x: Input tensor.
    """


@binary(rule=rules.REAL_FLOAT)
def xlogy(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x log(y), and 0 where x is 0 (unless y is NaN).

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary(rule=rules.REAL_FLOAT)
def xlog1py(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x log(1 + y), and 0 where x is 0 (unless y is NaN).

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@unary(rule=rules.REAL_FLOAT)
def sigmoid(x: TensorLike) -> Tensor:
    """Return 1 / (1 + exp(-x)).

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL_FLOAT)
def log_sigmoid(x: TensorLike) -> Tensor:
    """Return log(sigmoid(x)) without overflow.

    Args:
        x: Input tensor.
    """


@op(rule=rules.REAL_FLOAT)
def softplus(x: TensorLike, beta: float = 1.0) -> Tensor:
    """Return log(1 + exp(beta x)) / beta without overflow.

    Args:
        x: Input tensor.
        beta: Sharpness of the bend at zero.
    """


@op(rule=rules.REAL_FLOAT)
def logit(x: TensorLike, eps: float | None = None) -> Tensor:
    """Return log(x / (1 - x)), the inverse of `sigmoid`.

    Args:
        x: Probabilities in [0, 1].
        eps: Clip x to [eps, 1 - eps] first. Default: no clipping.
    """


expit = sigmoid
gammaln = lgamma
logsigmoid = log_sigmoid
