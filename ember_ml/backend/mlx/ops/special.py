"""Special functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx.core import erfinv as erfinv
from mlx.core import sigmoid as sigmoid

from ember_ml._core.errors import ArgumentError
from ember_ml.backend.mlx import error_function, gamma_function
from ember_ml.backend.mlx.gamma_function import polynomial

_BESSEL_NEAR = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
_BESSEL_FAR = (
    *(0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281),
    *(-0.02057706, 0.02635537, -0.01647633, 0.00392377),
)
_FIRST_NEAR = (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411)
_FIRST_FAR = (
    *(0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555),
    *(0.02282967, -0.02895312, 0.01787654, -0.00420059),
)


def _in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute in float32 and round to the input dtype."""

    @functools.wraps(function)
    def kernel(x: mx.array, *args: Any, **kwargs: Any) -> mx.array:
        if x.dtype == mx.float32:
            return function(x, *args, **kwargs)
        wide = [part.astype(mx.float32) if isinstance(part, mx.array) else part for part in args]
        return function(x.astype(mx.float32), *wide, **kwargs).astype(x.dtype)

    return kernel


erf = _in_float32(error_function.erf)
erfc = _in_float32(error_function.erfc)
log_ndtr = _in_float32(error_function.log_ndtr)
ndtri = _in_float32(error_function.ndtri)
lgamma = _in_float32(gamma_function.lgamma)
digamma = _in_float32(gamma_function.digamma)


@_in_float32
def ndtr(x: mx.array) -> mx.array:
    return error_function.erfc(-x / math.sqrt(2.0)) / 2


@_in_float32
def polygamma(x: mx.array, n: int = 1) -> mx.array:
    if n < 0:
        raise ArgumentError(f"polygamma: n={n} must not be negative")
    return gamma_function.polygamma(n, x)


@_in_float32
def betaln(x: mx.array, y: mx.array) -> mx.array:
    return gamma_function.lgamma(x) + gamma_function.lgamma(y) - gamma_function.lgamma(x + y)


@_in_float32
def i0(x: mx.array) -> mx.array:
    """Evaluate the polynomials 9.8.1 and 9.8.2 of Abramowitz and Stegun."""
    size = mx.abs(x)
    near = polynomial(_BESSEL_NEAR, mx.square(mx.minimum(3.75, size) / 3.75))
    far = mx.maximum(size, 3.75)
    tail = mx.exp(far) / mx.sqrt(far) * polynomial(_BESSEL_FAR, 3.75 / far)
    return mx.where(mx.isinf(size), size, mx.where(size <= 3.75, near, tail))


@_in_float32
def i1(x: mx.array) -> mx.array:
    """Evaluate the polynomials 9.8.3 and 9.8.4 of Abramowitz and Stegun."""
    size = mx.abs(x)
    near = x * polynomial(_FIRST_NEAR, mx.square(mx.minimum(3.75, size) / 3.75))
    far = mx.maximum(size, 3.75)
    tail = mx.exp(far) / mx.sqrt(far) * polynomial(_FIRST_FAR, 3.75 / far)
    return mx.where(mx.isinf(size), x, mx.where(size <= 3.75, near, mx.sign(x) * tail))


def entr(x: mx.array) -> mx.array:
    return mx.where(x < 0, mx.array(-math.inf, x.dtype), -xlogy(x, x))


def xlogy(x: mx.array, y: mx.array) -> mx.array:
    skip = (x == 0) & ((y <= 0) | mx.isinf(y))
    return x * mx.log(mx.where(skip, mx.ones_like(y), y))


def xlog1py(x: mx.array, y: mx.array) -> mx.array:
    skip = (x == 0) & ((y <= -1) | mx.isinf(y))
    return x * mx.log1p(mx.where(skip, mx.zeros_like(y), y))


def log_sigmoid(x: mx.array) -> mx.array:
    return -mx.logaddexp(-x, 0)


def softplus(x: mx.array, beta: float = 1.0) -> mx.array:
    return mx.logaddexp(x * float(beta), 0) / beta


def logit(x: mx.array, eps: float | None = None) -> mx.array:
    if eps is not None:
        x = mx.clip(x, eps, 1 - eps)
    return mx.log(x) - mx.log1p(-x)
