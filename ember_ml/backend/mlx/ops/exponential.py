"""Exponentials, logarithms and roots."""

from __future__ import annotations

import math

import mlx.core as mx
from mlx.core import exp as exp
from mlx.core import log as log
from mlx.core import log1p as log1p
from mlx.core import log2 as log2
from mlx.core import log10 as log10
from mlx.core import logaddexp as logaddexp
from mlx.core import rsqrt as rsqrt
from mlx.core import sqrt as sqrt

from ember_ml.backend.interface import Variants
from ember_ml.backend.mlx.bits import complex_of, copysign

_LOG2 = math.log(2.0)


def exp2(x: mx.array) -> mx.array:
    if x.dtype == mx.complex64:
        return mx.exp(complex_of(mx.real(x) * _LOG2, mx.imag(x) * _LOG2))
    return mx.power(mx.array(2, x.dtype), x)


def expm1(x: mx.array) -> mx.array:
    if x.dtype != mx.complex64:
        return mx.expm1(x)
    size, angle = mx.real(x), mx.imag(x)
    real = mx.expm1(size) * mx.cos(angle) - 2 * mx.square(mx.sin(angle / 2))
    imaginary = mx.where(angle == 0, angle, mx.exp(size) * mx.sin(angle))
    endless = mx.isinf(size) & ~mx.isfinite(angle)
    real = mx.where(endless, mx.where(size > 0, math.inf, -1.0), real)
    return complex_of(real, mx.where(endless & (size < 0), 0.0, imaginary))


def logaddexp2(x: mx.array, y: mx.array) -> mx.array:
    """Split the gradient between equal operands; MLX's maximum passes it to the second."""
    equal = x == y
    high = mx.where(equal, x / 2 + y / 2, mx.maximum(x, y))
    distance = mx.where(equal, mx.zeros_like(high), -mx.abs(x - y))
    return high + mx.log1p(exp2(distance)) / _LOG2


def cbrt(x: mx.array) -> mx.array:
    """Compute x**(1/3), refined by one Newton step."""
    size = mx.abs(x).astype(mx.float32)
    regular = (size > 0) & mx.isfinite(size)
    base = mx.where(regular, size, 1.0)
    root = mx.power(base, 1 / 3)
    root = (root - (root - base / (root * root)) / 3).astype(x.dtype)
    return mx.where(regular, copysign(root, x), x)


_SCALARS = {"logaddexp": logaddexp}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
