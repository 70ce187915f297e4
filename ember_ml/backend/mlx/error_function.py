"""Error function, its complement and normal quantiles in float32.

References: W. H. Press et al., "Numerical Recipes", erfcc; M. J. Wichura, "Algorithm AS 241".
"""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.bits import copysign
from ember_ml.backend.mlx.gamma_function import differentiable, polynomial

_ERF_NEAR_ZERO = tuple(
    2 / math.sqrt(math.pi) * (-1.0) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(7)
)
_ERFCX = (
    *(-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806),
    *(0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277),
)
# Numerators and denominators, the constant first.
_CENTRE = (
    (3.3871327179, 50.434271938, 159.29113202, 59.109374720),
    (1.0, 17.895169469, 78.757757664, 67.187563600),
)
_MIDDLE = (
    (1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103),
    (1.0, 0.73700164250, 0.12021132975),
)
_TAIL = (
    (6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997),
    (1.0, 0.24197894225, 0.012258202635),
)


def _ratio(coefficients: Any, x: mx.array) -> mx.array:
    return polynomial(coefficients[0], x) / polynomial(coefficients[1], x)


def erf(x: mx.array) -> mx.array:
    """Return the error function; MLX's own is inaccurate near zero."""
    near = mx.clip(x, -0.5, 0.5)
    return mx.where(mx.abs(x) < 0.5, near * polynomial(_ERF_NEAR_ZERO, near * near), mx.erf(x))


def erfcx(x: mx.array) -> mx.array:
    """Return exp(x**2) erfc(x) for x >= 0."""
    t = 1 / (1 + x / 2)
    return t * mx.exp(polynomial(_ERFCX, t))


@differentiable(lambda x: -2 / math.sqrt(math.pi) * mx.exp(-x * x))
def erfc(x: mx.array) -> mx.array:
    """Return 1 - erf(x)."""
    size = mx.minimum(mx.abs(x), 12.0)
    coarse = mx.floor(size * 16) / 16  # its square is exact
    tail = mx.exp(-coarse * coarse) * mx.exp((coarse - size) * (coarse + size)) * erfcx(size)
    return mx.where(x < 0, 2 - tail, tail)


def log_ndtr(x: mx.array) -> mx.array:
    """Return the logarithm of the standard normal CDF."""
    tail = mx.maximum(-x, 1.0) / math.sqrt(2.0)
    low = mx.log(erfcx(tail) / 2) - tail * tail
    high = mx.log1p(-erfc(mx.maximum(x, -1.0) / math.sqrt(2.0)) / 2)
    return mx.where(x < -1, low, high)


def ndtri(x: mx.array) -> mx.array:
    """Return the standard normal quantile of a probability."""
    offset, tail = x - 0.5, mx.minimum(x, 1 - x)
    centre = offset * _ratio(_CENTRE, 0.180625 - offset * offset)
    r = mx.sqrt(-mx.log(mx.where(tail > 0, mx.minimum(tail, 0.25), 0.25)))
    outer = mx.where(r <= 5.0, _ratio(_MIDDLE, r - 1.6), _ratio(_TAIL, r - 5.0))
    outer = mx.where(tail == 0, math.inf, outer)
    inside = mx.where(mx.abs(offset) <= 0.425, centre, copysign(outer, offset))
    return mx.where(tail >= 0, inside, math.nan)
