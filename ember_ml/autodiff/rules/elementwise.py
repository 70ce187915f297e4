"""Arithmetic."""

from __future__ import annotations

import cmath
import math
from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.rules import arithmetic, by_operand, rule
from ember_ml.autodiff.rules._shared import conj

arithmetic(ops.add, x=lambda g, out, x, y: g, y=lambda g, out, x, y: g)
arithmetic(ops.subtract, x=lambda g, out, x, y: g, y=lambda g, out, x, y: -g)
arithmetic(ops.multiply, x=lambda g, out, x, y: g * y, y=lambda g, out, x, y: g * x)
arithmetic(ops.divide, x=lambda g, out, x, y: g / y, y=lambda g, out, x, y: -g * (out / y))
arithmetic(ops.negative, x=lambda g, out, x: -g)
arithmetic(ops.positive, x=lambda g, out, x: g)
arithmetic(ops.square, x=lambda g, out, x: g * (2 * x))
arithmetic(ops.reciprocal, x=lambda g, out, x: -g * (out * out))
by_operand(
    ops.remainder,
    x=lambda g, out, x, y: g,
    y=lambda g, out, x, y: -g * ops.floor_divide(x, y),
)
by_operand(
    ops.fmod,
    x=lambda g, out, x, y: g,
    y=lambda g, out, x, y: -g * ops.trunc(x / y),
)
by_operand(
    ops.divmod,
    x=lambda g, out, x, y: g[1],
    y=lambda g, out, x, y: -g[1] * out[0],
)
by_operand(ops.abs, x=lambda g, out, x: g * ops.sign(x))
by_operand(
    ops.multiply_add,
    x=lambda g, out, x, y, z: g * conj(y),
    y=lambda g, out, x, y, z: g * conj(x),
    z=lambda g, out, x, y, z: g,
)
by_operand(
    ops.lerp,
    x=lambda g, out, x, y, weight: g * (1 - conj(weight)),
    y=lambda g, out, x, y, weight: g * conj(weight),
    weight=lambda g, out, x, y, weight: g * conj(y - x),
)
by_operand(
    ops.heaviside,
    x=lambda g, out, x, y: ops.zeros_like(g),
    y=lambda g, out, x, y: ops.where(ops.equal(x, 0), g, 0),
)


@rule(ops.sign)
def _sign(g: Any, out: Any, x: Any) -> Any:
    if x.dtype.kind != "complex":
        return ops.zeros_like(g)
    size = ops.abs(x)
    zero = ops.equal(size, 0)
    turn = g - out * ops.real(conj(out) * g)
    return ops.where(zero, 0, turn / ops.where(zero, 1, size))


def _base(g: Any, out: Any, x: Any, y: Any) -> Any:
    if not isinstance(y, EmberTensor):
        return ops.zeros_like(x) if y == 0 else g * conj(y * x ** (y - 1))
    zero = ops.equal(y, 0)
    return g * conj(y * x ** ops.where(zero, 1, y - 1))  # 0 ** -1 times 0 is no number


def _exponent(g: Any, out: Any, x: Any, y: Any) -> Any:
    if not isinstance(x, EmberTensor):
        return g * conj(out * _log(x, out))
    zero = ops.equal(x, 0)
    return g * conj(out * ops.where(zero, 0, ops.log(ops.where(zero, 1, x))))


def _log(x: complex, out: Any) -> complex:
    """The logarithm of a number; 0 of 0, whose powers do not change."""
    if x == 0:
        return 0.0
    if out.dtype.kind == "complex":
        return cmath.log(x)
    return math.log(x.real) if x.real > 0 else math.nan


by_operand(ops.pow, x=_base, y=_exponent)
by_operand(ops.float_power, x=_base, y=_exponent)
