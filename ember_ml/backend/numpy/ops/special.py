"""Special functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml._core.errors import ArgumentError
from ember_ml.backend.interface import Variants
from ember_ml.backend.numpy import error_function, gamma_function
from ember_ml.backend.numpy import kernel_calls as native

_SQRT2 = math.sqrt(2.0)


def _in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute in float64 and round to the input dtype."""

    @functools.wraps(function)
    def kernel(x: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
        wide = [part.astype(np.float64) if hasattr(part, "dtype") else part for part in args]
        with np.errstate(all="ignore"):
            return np.asarray(function(x.astype(np.float64), *wide, **kwargs)).astype(x.dtype)

    return kernel


erf = _in_float64(error_function.erf)
erfc = _in_float64(error_function.erfc)
lgamma = _in_float64(gamma_function.lgamma)
digamma = _in_float64(gamma_function.digamma)


@_in_float64
def erfinv(x: np.ndarray) -> np.ndarray:
    return error_function.quantile(x / 2, (1 - np.abs(x)) / 2) / _SQRT2


@_in_float64
def ndtr(x: np.ndarray) -> np.ndarray:
    return error_function.erfc(-x / _SQRT2) / 2


@_in_float64
def log_ndtr(x: np.ndarray) -> np.ndarray:
    tail = np.maximum(-x, 1.0) / _SQRT2
    low = np.log(error_function.erfcx(tail) / 2) - tail * tail
    return np.where(x < -1, low, np.log1p(-error_function.erfc(x / _SQRT2) / 2))


@_in_float64
def ndtri(x: np.ndarray) -> np.ndarray:
    return error_function.quantile(x - 0.5, np.minimum(x, 1 - x))


@_in_float64
def polygamma(x: np.ndarray, n: int = 1) -> np.ndarray:
    if n < 0:
        raise ArgumentError(f"polygamma: n={n} must not be negative")
    return gamma_function.digamma(x) if n == 0 else gamma_function.polygamma(n, x)


@_in_float64
def betaln(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return gamma_function.lgamma(x) + gamma_function.lgamma(y) - gamma_function.lgamma(x + y)


@_in_float64
def i0(x: np.ndarray) -> np.ndarray:
    return np.where(np.isinf(x), np.inf, np.i0(x))


@_in_float64
def i1(x: np.ndarray) -> np.ndarray:
    near, far = np.minimum(np.abs(x), 20.0), np.maximum(np.abs(x), 20.0)
    low = high = np.ones_like(x)
    for k in range(50, 0, -1):
        low = 1 + near * near / (4 * k * (k + 1)) * low
    for k in range(24, 0, -1):
        high = 1 - (4 - (2 * k - 1) ** 2) / (8 * k * far) * high
    half = np.exp(far / 2)
    high = half * (half * high / np.sqrt(2 * math.pi * far))
    out = np.where(np.isinf(x), np.inf, np.where(np.abs(x) <= 20, near / 2 * low, high))
    return np.copysign(out, x)


def entr(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, x.dtype.type(-np.inf), -xlogy(x, x))


def xlogy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where((x == 0) & ~np.isnan(y), x.dtype.type(0), x * np.log(y))


def xlog1py(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where((x == 0) & ~np.isnan(y), x.dtype.type(0), x * np.log1p(y))


def sigmoid(x: np.ndarray) -> np.ndarray:
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, x.dtype.type(1), decay) / (1 + decay)


@np.errstate(over="ignore")  # type: ignore[untyped-decorator]
def _sigmoid_wide(x: np.ndarray) -> np.ndarray:
    """Compute as a reciprocal; where the denominator overflows, the result 0 is correct."""
    return 1 / (1 + np.exp(-x))


def log_sigmoid(x: np.ndarray) -> np.ndarray:
    return -np.logaddexp(-x, 0)


def softplus(x: np.ndarray, beta: float = 1.0) -> np.ndarray:
    if beta == 1:
        return _softplus(x)
    return _softplus(x * beta) / beta


_softplus = native.elementwise("softplus", lambda x: np.logaddexp(x, 0))


def logit(x: np.ndarray, eps: float | None = None) -> np.ndarray:
    if eps is not None:
        x = np.clip(x, eps, 1 - eps)
    with np.errstate(all="ignore"):
        return np.log(x) - np.log1p(-x)


VARIANTS = Variants(
    by_dtype={
        "erf": {
            "float32": native.elementwise("erf", error_function.quick_erf),
            "float64": native.elementwise("erf", erf),
        },
        "sigmoid": dict.fromkeys(
            ("float32", "float64"), native.elementwise("sigmoid", _sigmoid_wide)
        ),
    }
)
