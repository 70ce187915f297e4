"""Signs, exponents and neighbors of floats."""

from __future__ import annotations

import math

import mlx.core as mx

from ember_ml.backend.mlx import bits
from ember_ml.backend.mlx.bits import copysign as copysign
from ember_ml.backend.mlx.bits import signbit as signbit


def nextafter(x: mx.array, y: mx.array) -> mx.array:
    x, y = mx.broadcast_arrays(mx.stop_gradient(x), mx.stop_gradient(y))
    integers = bits.as_integers(x)
    step = mx.where((y > x) == (x > 0), 1, -1).astype(integers.dtype)
    next_to_zero = mx.view(mx.ones_like(integers), x.dtype)
    out = mx.where(x == 0, bits.copysign(next_to_zero, y), mx.view(integers + step, x.dtype))
    out = mx.where(x == y, y, out)
    return mx.where(mx.isnan(x) | mx.isnan(y), mx.array(math.nan, x.dtype), out)


def ldexp(x: mx.array, exponent: mx.array) -> mx.array:
    return bits.scale(x.astype(mx.float32), exponent).astype(x.dtype)


def frexp(x: mx.array) -> tuple[mx.array, mx.array]:
    wide = x.astype(mx.float32)
    tiny = mx.abs(wide) < 2.0**-126
    biased = (bits.as_integers(mx.where(tiny, wide * 2.0**25, wide)) >> 23) & 0xFF
    exponent = biased - mx.where(tiny, 126 + 25, 126)
    exponent = mx.where((x == 0) | ~mx.isfinite(x), 0, exponent).astype(mx.int32)
    return bits.scale(wide, -exponent).astype(x.dtype), exponent


def nan_to_num(
    x: mx.array, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> mx.array:
    if x.dtype == mx.complex64:
        parts = (mx.nan_to_num(part, nan, posinf, neginf) for part in (mx.real(x), mx.imag(x)))
        return bits.complex_of(*parts)
    return mx.nan_to_num(x, nan, posinf, neginf)
