"""Bitwise operations."""

from __future__ import annotations

import mlx.core as mx
from mlx.core import bitwise_and as bitwise_and
from mlx.core import bitwise_invert as bitwise_invert
from mlx.core import bitwise_or as bitwise_or
from mlx.core import bitwise_xor as bitwise_xor

from ember_ml.backend.interface import Variants
from ember_ml.backend.mlx.bits import as_unsigned


def bitwise_left_shift(x: mx.array, y: mx.array) -> mx.array:
    """Return 0 for shifts beyond the bits of the dtype, which processors take modulo the word size.

    As in NumPy, a negative shift counts as a large one.
    """
    x, y = mx.broadcast_arrays(x, as_unsigned(y))
    beyond = y >= 8 * x.dtype.size
    out = mx.left_shift(x, mx.where(beyond, mx.zeros_like(y), y).astype(x.dtype))
    return mx.where(beyond, mx.zeros_like(out), out)


def bitwise_right_shift(x: mx.array, y: mx.array) -> mx.array:
    """Return the sign for shifts beyond the bits of the dtype; a negative shift counts as large."""
    x, y = mx.broadcast_arrays(x, as_unsigned(y))
    last = 8 * x.dtype.size - 1
    out = mx.right_shift(x, mx.minimum(y, last).astype(x.dtype))
    return (
        out
        if mx.issubdtype(x.dtype, mx.signedinteger)
        else mx.where(y > last, mx.zeros_like(out), out)
    )


def count_ones(x: mx.array) -> mx.array:
    """Sum neighboring bits, pairs and nibbles, then all bytes by a multiplication."""
    bits = as_unsigned(x).astype(mx.uint64)
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((bits * 0x0101010101010101) >> 56).astype(mx.int64)


_SCALARS = {
    "bitwise_and": bitwise_and,
    "bitwise_or": bitwise_or,
    "bitwise_xor": bitwise_xor,
}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
