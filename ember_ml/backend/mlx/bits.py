"""Bit-level operations on floats that MLX lacks."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

_UNSIGNED = {mx.int8: mx.uint8, mx.int16: mx.uint16, mx.int32: mx.uint32, mx.int64: mx.uint64}
_INTEGERS = {mx.float16: mx.int16, mx.bfloat16: mx.int16, mx.float32: mx.int32}


def as_integers(x: mx.array) -> mx.array:
    """Return the bits as signed integers of the same width."""
    return mx.view(mx.stop_gradient(x), _INTEGERS[x.dtype])


def as_unsigned(x: mx.array) -> mx.array:
    """Return the bits of integers as unsigned integers of the same width."""
    return mx.view(x, _UNSIGNED.get(x.dtype, x.dtype))


def signbit(x: mx.array) -> mx.array:
    """Return whether the sign bit is set."""
    return as_integers(x) < 0


def with_sign(x: mx.array, negative: Any) -> mx.array:
    """Return x or -x, whichever has the given sign bit."""
    return mx.where(signbit(x) == negative, x, -x)


def copysign(x: mx.array, y: mx.array) -> mx.array:
    """Return |x| with the sign of y."""
    return with_sign(x, signbit(y))


def power_of_two(exponent: mx.array) -> mx.array:
    """Return 2**exponent exactly as float32, for int32 exponents from -126 to 127."""
    return mx.stop_gradient(mx.view((exponent + 127) << 23, mx.float32))


def scale(x: mx.array, exponent: mx.array) -> mx.array:
    """Return x * 2**exponent for float32, in steps that do not overflow."""
    rest = mx.clip(exponent.astype(mx.int64), -378, 381).astype(mx.int32)
    for _ in range(3):
        step = mx.clip(rest, -126, 127)
        x = x * power_of_two(step)
        rest = rest - step
    return x


def complex_of(real: mx.array, imaginary: Any) -> mx.array:
    """Build complex numbers; `real + 1j * imag` loses -0 and turns infinity into NaN."""
    upper, lower = real + 1j * imaginary, mx.conj(real - 1j * imaginary)
    parts = mx.stack([mx.stop_gradient(real), mx.stop_gradient(imaginary)], axis=-1)
    finite = mx.isfinite(real) & mx.isfinite(imaginary)
    out = mx.where(signbit(imaginary), lower, upper)
    return mx.where(finite, out, mx.view(parts, mx.complex64)[..., 0])
