"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

import math

import mlx.core as mx
from mlx.core import acos as acos
from mlx.core import acosh as acosh
from mlx.core import asin as asin
from mlx.core import asinh as asinh
from mlx.core import atan as atan
from mlx.core import atanh as atanh
from mlx.core import cos as cos
from mlx.core import cosh as cosh
from mlx.core import sinh as sinh
from mlx.core import tan as tan

from ember_ml.backend.mlx.bits import complex_of, copysign

deg2rad = mx.radians
rad2deg = mx.degrees


def sin(x: mx.array) -> mx.array:
    """Preserve the sign of zero."""
    return mx.where(x == 0, x, mx.sin(x))


def tanh(x: mx.array) -> mx.array:
    """Preserve the sign of the imaginary part at the limits +1 and -1."""
    out = mx.tanh(x)
    if x.dtype != mx.complex64:
        return out
    real, imaginary = mx.real(x), mx.imag(x)
    limit = complex_of(copysign(mx.ones_like(real), real), copysign(mx.zeros_like(real), imaginary))
    return mx.where(mx.isinf(real) & mx.isfinite(imaginary), limit, out)


def hypot(x: mx.array, y: mx.array) -> mx.array:
    """Divide by the larger operand, which is a constant to the gradient."""
    high = mx.stop_gradient(mx.maximum(mx.abs(x), mx.abs(y)))
    regular = (high > 0) & mx.isfinite(high)
    unit = mx.where(regular, high, 1)
    total = mx.square(mx.where(regular, x, 1) / unit) + mx.square(mx.where(regular, y, 0) / unit)
    out = mx.where(regular, high * mx.sqrt(total), high)
    return mx.where(mx.isinf(x) | mx.isinf(y), mx.array(math.inf, x.dtype), out)


def atan2(x: mx.array, y: mx.array) -> mx.array:
    """Return MLX's own with a zero gradient at the origin, where MLX's is NaN."""
    origin = (x == 0) & (y == 0)
    away = mx.arctan2(x, mx.where(origin, mx.array(1, y.dtype), y))
    return mx.where(origin, mx.stop_gradient(mx.arctan2(x, y)), away)


def sinc(x: mx.array) -> mx.array:
    angle = math.pi * mx.where(x == 0, mx.ones_like(x), x)
    return mx.where(x == 0, mx.ones_like(x), mx.sin(angle) / angle)
