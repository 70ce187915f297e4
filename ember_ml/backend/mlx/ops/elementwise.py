"""Elementwise arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
from mlx.core import abs as abs
from mlx.core import add as add
from mlx.core import divide as divide
from mlx.core import multiply as multiply
from mlx.core import negative as negative
from mlx.core import positive as positive
from mlx.core import reciprocal as reciprocal
from mlx.core import square as square
from mlx.core import subtract as subtract

from ember_ml.backend.interface import Variants
from ember_ml.backend.mlx.bits import copysign
from ember_ml.backend.mlx.custom import attach_vjp

_SIGNED = (mx.int8, mx.int16, mx.int32, mx.int64)


def _is_float(x: mx.array) -> bool:
    return mx.issubdtype(x.dtype, mx.floating)


def _pair(x: Any, y: Any) -> tuple[mx.array, mx.array]:
    """Return both operands as arrays; one may be a number."""
    if not isinstance(x, mx.array):
        return mx.array(x, y.dtype), y
    return x, y if isinstance(y, mx.array) else mx.array(y, x.dtype)


def _divisor(x: mx.array, y: mx.array) -> mx.array:
    """Replace divisors that would crash the process (0, or an overflowing quotient) by 1."""
    safe = mx.where(y == 0, mx.array(1, y.dtype), y)
    if y.dtype not in _SIGNED:
        return safe
    return mx.where((y == -1) & (x == mx.iinfo(x.dtype).min), mx.array(1, y.dtype), safe)


def _direction(primals: Sequence[mx.array], g: mx.array, out: mx.array) -> list[mx.array]:
    (x,) = primals
    size = _size(x)
    return [g * x / mx.where(size == 0, 1, size)]


_size = attach_vjp(mx.abs, _direction)
"""Absolute value of complex numbers: the second derivative of MLX (0.32) is 0."""


def floor_divide(x: mx.array, y: mx.array) -> mx.array:
    x, y = _pair(x, y)
    if _is_float(x):
        return _floor_divide_floats(x, y)
    out = mx.floor_divide(x, _divisor(x, y))
    return mx.where(y == 0, mx.array(0, out.dtype), out)


def _floor_divide_floats(x: mx.array, y: mx.array) -> mx.array:
    """Compute from the remainder; the quotient may round up to an integer."""
    rest = fmod(x, y)
    exact = (x - rest) / y - ((rest != 0) & ((rest < 0) != (y < 0))).astype(x.dtype)
    quotient = x / y
    irregular = mx.isinf(x) | mx.isinf(y) | (y == 0)
    out = mx.where(irregular, quotient, mx.round(exact))
    return mx.where(out == 0, copysign(mx.zeros_like(out), quotient), out)


def remainder(x: mx.array, y: mx.array) -> mx.array:
    x, y = _pair(x, y)
    if _is_float(x):
        out = mx.remainder(x, y)
        return mx.where(out == 0, copysign(mx.zeros_like(out), y), out)
    return mx.remainder(x, _divisor(x, y))


def fmod(x: mx.array, y: mx.array) -> mx.array:
    x, y = _pair(x, y)
    if _is_float(x):
        return copysign(mx.remainder(mx.abs(x), mx.abs(y)), x)
    divisor = _divisor(x, y)
    out = mx.remainder(x, divisor)
    return mx.where((out != 0) & ((out < 0) != (x < 0)), out - divisor, out)


def divmod(x: mx.array, y: mx.array) -> tuple[mx.array, mx.array]:
    return floor_divide(x, y), remainder(x, y)


def _complex_power(x: mx.array, y: mx.array) -> mx.array:
    """Return MLX's power with the gradient of exp(y log(x)); MLX's gradient is the conjugate."""
    known = mx.isfinite(x) & mx.isfinite(y) & (x != 0)
    growth = mx.where(known, y, 0) * mx.log(mx.where(known, x, 1))
    return mx.stop_gradient(mx.power(x, y)) * mx.exp(growth - mx.stop_gradient(growth))


def _power_gradients(primals: Sequence[mx.array], g: mx.array, out: mx.array) -> list[mx.array]:
    x, y = primals
    constant = y == 0
    base = mx.where(constant, 0, y * mx.power(mx.where(constant, 1, x), y - 1))
    log = mx.where(x == 0, 0, mx.log(mx.where(x == 0, 1, x)))  # the powers of 0 are constant
    return [g * base, g * out * log]


_real_power = attach_vjp(mx.power, _power_gradients)
"""MLX's own gradient (0.32) is NaN for 0**0."""


def float_power(x: mx.array, y: mx.array) -> mx.array:
    if type(y) in (float, int) and y != 0 and _is_float(x):
        return mx.power(x, y)
    x, y = _pair(x, y)
    if x.dtype == mx.complex64:
        return _complex_power(x, y)
    return _real_power(*mx.broadcast_arrays(x, y))


def pow(x: mx.array, y: mx.array) -> mx.array:
    """Handle negative powers of integers, on which MLX hangs."""
    x, y = _pair(x, y)
    if x.dtype not in _SIGNED:
        return float_power(x, y)
    fraction = y < 0
    out = mx.power(x, mx.where(fraction, y & 1, y))
    return mx.where(fraction & (mx.abs(x) != 1), mx.array(0, out.dtype), out)


def sign(x: mx.array) -> mx.array:
    if x.dtype == mx.complex64:
        zero = x == 0
        return mx.where(zero, mx.zeros_like(x), x / mx.abs(mx.where(zero, 1, x)))
    return mx.where(mx.isnan(x), x, mx.sign(x)) if _is_float(x) else mx.sign(x)


def multiply_add(x: mx.array, y: mx.array, z: mx.array) -> mx.array:
    return x * y + z


def lerp(x: mx.array, y: mx.array, weight: mx.array) -> mx.array:
    step = y - x
    return mx.where(mx.abs(weight) < 0.5, x + weight * step, y - (1 - weight) * step)


def heaviside(x: mx.array, y: mx.array) -> mx.array:
    step = mx.where(mx.isnan(x), x, (x > 0).astype(x.dtype))
    return mx.where(x == 0, y, step)


_EUCLID_STEPS = {8: 13, 16: 24, 32: 47, 64: 93}
"""Maximum number of steps of Euclid's algorithm, reached by neighboring Fibonacci numbers."""


def gcd(x: mx.array, y: mx.array) -> mx.array:
    x, y = mx.broadcast_arrays(mx.abs(x), mx.abs(y))
    for _ in range(_EUCLID_STEPS[8 * x.dtype.size]):
        x, y = mx.where(y == 0, x, y), mx.where(y == 0, y, remainder(x, y))
    return mx.abs(x)  # the absolute value of the smallest integer is negative


def lcm(x: mx.array, y: mx.array) -> mx.array:
    return mx.abs(floor_divide(x, gcd(x, y))) * mx.abs(y)


_SCALARS = {
    "add": add,
    "divide": divide,
    "float_power": float_power,
    "floor_divide": floor_divide,
    "fmod": fmod,
    "multiply": multiply,
    "pow": pow,
    "remainder": remainder,
    "subtract": subtract,
}
VARIANTS = Variants(
    by_dtype={"abs": {"complex64": _size}}, right_scalars=_SCALARS, left_scalars=_SCALARS
)
