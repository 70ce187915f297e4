"""Special functions, element by element."""

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
    """The error function: 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""


@unary(rule=rules.REAL_FLOAT)
def erfc(x: TensorLike) -> Tensor:
    """1 - erf(x), exact where erf(x) is near 1."""


@unary(rule=rules.REAL_FLOAT)
def erfinv(x: TensorLike) -> Tensor:
    """The inverse of erf, on [-1, 1]."""


@unary(rule=rules.REAL_FLOAT)
def ndtr(x: TensorLike) -> Tensor:
    """The standard normal distribution function: erfc(-x / sqrt(2)) / 2."""


@unary(rule=rules.REAL_FLOAT)
def log_ndtr(x: TensorLike) -> Tensor:
    """log(ndtr(x)), finite far into the lower tail."""


@unary(rule=rules.REAL_FLOAT)
def ndtri(x: TensorLike) -> Tensor:
    """The inverse of ndtr, on [0, 1]: quantiles of the standard normal distribution."""


@unary(rule=rules.REAL_FLOAT)
def lgamma(x: TensorLike) -> Tensor:
    """log(|gamma(x)|)."""


@unary(rule=rules.REAL_FLOAT)
def digamma(x: TensorLike) -> Tensor:
    """The derivative of lgamma."""


@op(rule=rules.REAL_FLOAT)
def polygamma(x: TensorLike, n: int = 1) -> Tensor:
    """The n-th derivative of digamma."""


@binary(rule=rules.REAL_FLOAT)
def betaln(x: TensorLike, y: TensorLike) -> Tensor:
    """log(|beta(x, y)|) = lgamma(x) + lgamma(y) - lgamma(x + y)."""


@unary(rule=rules.REAL_FLOAT)
def i0(x: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind, order 0."""


@unary(rule=rules.REAL_FLOAT)
def i1(x: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind, order 1: the derivative of i0."""


@unary(rule=rules.REAL_FLOAT)
def entr(x: TensorLike) -> Tensor:
    """-x log(x); 0 at zero and -inf below."""


@binary(rule=rules.REAL_FLOAT)
def xlogy(x: TensorLike, y: TensorLike) -> Tensor:
    """x log(y), 0 where x is 0 (unless y is NaN)."""


@binary(rule=rules.REAL_FLOAT)
def xlog1py(x: TensorLike, y: TensorLike) -> Tensor:
    """x log(1 + y), 0 where x is 0 (unless y is NaN)."""


@unary(rule=rules.REAL_FLOAT)
def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + exp(-x))."""


@unary(rule=rules.REAL_FLOAT)
def log_sigmoid(x: TensorLike) -> Tensor:
    """log(sigmoid(x)), without overflow."""


@op(rule=rules.REAL_FLOAT)
def softplus(x: TensorLike, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, without overflow."""


@op(rule=rules.REAL_FLOAT)
def logit(x: TensorLike, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; of x clipped to [eps, 1 - eps] if eps is given."""


expit = sigmoid
gammaln = lgamma
logsigmoid = log_sigmoid
