"""VJP rules of arithmetic, bounds, floating-point parts and complex parts."""

from __future__ import annotations

import cmath
import math

from ember_ml import ops
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.autodiff.rules import arithmetic_vjps, vjp_rule, vjps
from ember_ml.autodiff.rules.helpers import conj

arithmetic_vjps(ops.add, x=lambda g, out, x, y: g, y=lambda g, out, x, y: g)
arithmetic_vjps(ops.subtract, x=lambda g, out, x, y: g, y=lambda g, out, x, y: -g)
arithmetic_vjps(ops.multiply, x=lambda g, out, x, y: g * y, y=lambda g, out, x, y: g * x)
arithmetic_vjps(ops.divide, x=lambda g, out, x, y: g / y, y=lambda g, out, x, y: -g * (out / y))
arithmetic_vjps(ops.negative, x=lambda g, out, x: -g)
arithmetic_vjps(ops.positive, x=lambda g, out, x: g)
arithmetic_vjps(ops.square, x=lambda g, out, x: g * (2 * x))
arithmetic_vjps(ops.reciprocal, x=lambda g, out, x: -g * (out * out))
vjps(
    ops.remainder,
    x=lambda g, out, x, y: g,
    y=lambda g, out, x, y: -g * ops.floor_divide(x, y),
)
vjps(
    ops.fmod,
    x=lambda g, out, x, y: g,
    y=lambda g, out, x, y: -g * ops.trunc(x / y),
)
vjps(
    ops.divmod,
    x=lambda g, out, x, y: g[1],
    y=lambda g, out, x, y: -g[1] * out[0],
)
vjps(ops.abs, x=lambda g, out, x: g * ops.sign(x))
vjps(
    ops.multiply_add,
    x=lambda g, out, x, y, z: g * conj(y),
    y=lambda g, out, x, y, z: g * conj(x),
    z=lambda g, out, x, y, z: g,
)
vjps(
    ops.lerp,
    x=lambda g, out, x, y, weight: g * (1 - conj(weight)),
    y=lambda g, out, x, y, weight: g * conj(weight),
    weight=lambda g, out, x, y, weight: g * conj(y - x),
)
vjps(
    ops.heaviside,
    x=lambda g, out, x, y: ops.zeros_like(g),
    y=lambda g, out, x, y: ops.where(ops.equal(x, 0), g, 0),
)


@vjp_rule(ops.sign)
def _sign(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    if x.dtype.kind != "complex":
        return ops.zeros_like(g)
    size = ops.abs(x)
    zero = ops.equal(size, 0)
    tangential = g - out * ops.real(conj(out) * g)
    return ops.where(zero, 0, tangential / ops.where(zero, 1, size))


def _base(g: Tensor, out: Tensor, x: Tensor, y: Tensor | complex) -> Tensor:
    if not isinstance(y, EmberTensor):
        return ops.zeros_like(x) if y == 0 else g * conj(y * x ** (y - 1))
    zero = ops.equal(y, 0)
    return g * conj(y * x ** ops.where(zero, 1, y - 1))  # 0 ** -1 times 0 would be NaN


def _exponent(g: Tensor, out: Tensor, x: Tensor | complex, y: Tensor) -> Tensor:
    if not isinstance(x, EmberTensor):
        return g * conj(out * _log(x, out))
    zero = ops.equal(x, 0)
    return g * conj(out * ops.where(zero, 0, ops.log(ops.where(zero, 1, x))))


def _log(x: complex, out: Tensor) -> complex:
    """Return the logarithm of a number, and 0 for 0, since its powers are constant."""
    if x == 0:
        return 0.0
    if out.dtype.kind == "complex":
        return cmath.log(x)
    return math.log(x.real) if x.real > 0 else math.nan


vjps(ops.pow, x=_base, y=_exponent)
vjps(ops.float_power, x=_base, y=_exponent)


def _greater_share(g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return x's gradient in the greater of x and y: half of g where they are equal."""
    return ops.where(ops.less(x, y), 0, ops.where(ops.equal(x, y), g * 0.5, g))


vjps(
    ops.maximum,
    x=lambda g, out, x, y: _greater_share(g, x, y),
    y=lambda g, out, x, y: _greater_share(g, y, x),
)
vjps(
    ops.minimum,
    x=lambda g, out, x, y: _greater_share(g, y, x),
    y=lambda g, out, x, y: _greater_share(g, x, y),
)
vjps(
    ops.fmax,
    x=lambda g, out, x, y: ops.where(ops.equal(x, out), g, 0),
    y=lambda g, out, x, y: ops.where(ops.equal(x, out), 0, g),
)
vjps(
    ops.fmin,
    x=lambda g, out, x, y: ops.where(ops.equal(x, out), g, 0),
    y=lambda g, out, x, y: ops.where(ops.equal(x, out), 0, g),
)


vjps(
    ops.copysign,
    x=lambda g, out, x, y: g * (ops.sign(x) * ops.sign(out)),
    y=lambda g, out, x, y: ops.zeros_like(g),
)
vjps(ops.ldexp, x=lambda g, out, x, exponent: ops.ldexp(g, exponent))
vjps(ops.frexp, x=lambda g, out, x: ops.ldexp(g[0], -out[1]))


@vjp_rule(ops.nan_to_num)
def _nan_to_num(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    if x.dtype.kind != "complex":
        return ops.where(ops.isfinite(x), g, 0)
    real = ops.where(ops.isfinite(ops.real(x)), ops.real(g), 0)
    imag = ops.where(ops.isfinite(ops.imag(x)), ops.imag(g), 0)
    return real + 1j * imag


vjps(ops.real, x=lambda g, out, x: g)
vjps(ops.conj, x=lambda g, out, x: conj(g))


@vjp_rule(ops.imag)
def _imag(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    return g * 1j if x.dtype.kind == "complex" else ops.zeros_like(g)


@vjp_rule(ops.angle)
def _angle(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    """Return the gradient; 0 at zero, where the angle is undefined."""
    if x.dtype.kind != "complex":
        return ops.zeros_like(g)
    zero = ops.equal(x, 0)
    return ops.where(zero, 0, g * 1j / conj(ops.where(zero, 1, x)))
