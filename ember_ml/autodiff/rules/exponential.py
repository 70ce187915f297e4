"""VJP rules of exponentials, logarithms, roots, circular and hyperbolic functions."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import arithmetic_vjps, vjp_rule, vjps
from ember_ml.autodiff.rules.helpers import conj

_LOG2 = math.log(2.0)
_LOG10 = math.log(10.0)

arithmetic_vjps(ops.exp, x=lambda g, out, x: g * out)
arithmetic_vjps(ops.exp2, x=lambda g, out, x: g * (out * _LOG2))
arithmetic_vjps(ops.expm1, x=lambda g, out, x: g * (out + 1))
arithmetic_vjps(ops.log, x=lambda g, out, x: g / x)
arithmetic_vjps(ops.log1p, x=lambda g, out, x: g / (x + 1))
arithmetic_vjps(ops.log2, x=lambda g, out, x: g / (x * _LOG2))
arithmetic_vjps(ops.log10, x=lambda g, out, x: g / (x * _LOG10))
vjps(
    ops.logaddexp,
    x=lambda g, out, x, y: g * ops.sigmoid(x - y),
    y=lambda g, out, x, y: g * ops.sigmoid(y - x),
)
vjps(
    ops.logaddexp2,
    x=lambda g, out, x, y: g * ops.sigmoid((x - y) * _LOG2),
    y=lambda g, out, x, y: g * ops.sigmoid((y - x) * _LOG2),
)
arithmetic_vjps(ops.sqrt, x=lambda g, out, x: g / (2 * out))
arithmetic_vjps(ops.rsqrt, x=lambda g, out, x: g * (out * out * out * -0.5))
arithmetic_vjps(ops.cbrt, x=lambda g, out, x: g / (3 * out * out))


vjps(ops.sin, x=lambda g, out, x: g * conj(ops.cos(x)))
vjps(ops.cos, x=lambda g, out, x: -g * conj(ops.sin(x)))
arithmetic_vjps(ops.tan, x=lambda g, out, x: g * (1 + out * out))
vjps(ops.asin, x=lambda g, out, x: g * conj(ops.rsqrt(1 - x * x)))
vjps(ops.acos, x=lambda g, out, x: -g * conj(ops.rsqrt(1 - x * x)))
arithmetic_vjps(ops.atan, x=lambda g, out, x: g / (1 + x * x))
vjps(ops.sinh, x=lambda g, out, x: g * conj(ops.cosh(x)))
vjps(ops.cosh, x=lambda g, out, x: g * conj(ops.sinh(x)))
arithmetic_vjps(ops.tanh, x=lambda g, out, x: g - g * (out * out))
vjps(ops.asinh, x=lambda g, out, x: g * conj(ops.rsqrt(1 + x * x)))
vjps(ops.acosh, x=lambda g, out, x: g * conj(ops.rsqrt(x - 1) * ops.rsqrt(x + 1)))
arithmetic_vjps(ops.atanh, x=lambda g, out, x: g / (1 - x * x))
arithmetic_vjps(ops.deg2rad, x=lambda g, out, x: g * (math.pi / 180))
arithmetic_vjps(ops.rad2deg, x=lambda g, out, x: g * (180 / math.pi))
vjps(
    ops.hypot,
    x=lambda g, out, x, y: g * (x / out),
    y=lambda g, out, x, y: g * (y / out),
)


def _over_square(g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return g / (x**2 + y**2), and 0 at the origin."""
    square = x * x + y * y
    origin = ops.equal(square, 0)
    return ops.where(origin, 0, g / ops.where(origin, 1, square))


vjps(
    ops.atan2,
    x=lambda g, out, x, y: _over_square(g, x, y) * y,
    y=lambda g, out, x, y: _over_square(g, x, y) * -x,
)


@vjp_rule(ops.sinc)
def _sinc(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    zero = ops.equal(x, 0)
    slope = (ops.cos(math.pi * x) - out) / ops.where(zero, 1, x)
    return g * conj(ops.where(zero, 0, slope))
