"""Circular and hyperbolic functions and their inverses."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import arithmetic, by_operand, rule
from ember_ml.autodiff.rules._shared import conj

by_operand(ops.sin, x=lambda g, out, x: g * conj(ops.cos(x)))
by_operand(ops.cos, x=lambda g, out, x: -g * conj(ops.sin(x)))
arithmetic(ops.tan, x=lambda g, out, x: g * (1 + out * out))
by_operand(ops.asin, x=lambda g, out, x: g * conj(ops.rsqrt(1 - x * x)))
by_operand(ops.acos, x=lambda g, out, x: -g * conj(ops.rsqrt(1 - x * x)))
arithmetic(ops.atan, x=lambda g, out, x: g / (1 + x * x))
by_operand(ops.sinh, x=lambda g, out, x: g * conj(ops.cosh(x)))
by_operand(ops.cosh, x=lambda g, out, x: g * conj(ops.sinh(x)))
arithmetic(ops.tanh, x=lambda g, out, x: g - g * (out * out))
by_operand(ops.asinh, x=lambda g, out, x: g * conj(ops.rsqrt(1 + x * x)))
by_operand(ops.acosh, x=lambda g, out, x: g * conj(ops.rsqrt(x - 1) * ops.rsqrt(x + 1)))
arithmetic(ops.atanh, x=lambda g, out, x: g / (1 - x * x))
arithmetic(ops.deg2rad, x=lambda g, out, x: g * (math.pi / 180))
arithmetic(ops.rad2deg, x=lambda g, out, x: g * (180 / math.pi))
by_operand(
    ops.hypot,
    x=lambda g, out, x, y: g * (x / out),
    y=lambda g, out, x, y: g * (y / out),
)


def _per_square(g: Any, x: Any, y: Any) -> Any:
    """g / (x**2 + y**2), 0 at the origin."""
    square = x * x + y * y
    origin = ops.equal(square, 0)
    return ops.where(origin, 0, g / ops.where(origin, 1, square))


by_operand(
    ops.atan2,
    x=lambda g, out, x, y: _per_square(g, x, y) * y,
    y=lambda g, out, x, y: _per_square(g, x, y) * -x,
)


@rule(ops.sinc)
def _sinc(g: Any, out: Any, x: Any) -> Any:
    zero = ops.equal(x, 0)
    slope = (ops.cos(math.pi * x) - out) / ops.where(zero, 1, x)
    return g * conj(ops.where(zero, 0, slope))
