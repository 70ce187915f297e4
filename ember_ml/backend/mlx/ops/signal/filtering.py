"""Correlation."""

from __future__ import annotations

import mlx.core as mx

from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.backend.mlx.ops.signal.convolution import of_any_dtype


def _valid(x: mx.array, y: mx.array) -> mx.array:
    """Return the products of y with every window of x."""
    if mx.issubdtype(y.dtype, mx.inexact):
        products = of_any_dtype(mx.conv_general, x[None, :, None], y[None, :, None])
        return products[0, :, 0]
    windows = mx.as_strided(x, (len(x) - len(y) + 1, len(y)), (1, 1))
    return mx.sum(windows * y, -1).astype(x.dtype)


def correlate(x, y, mode="valid"):
    if x.ndim != 1 or y.ndim != 1 or 0 in (x.size, y.size):
        raise ShapeError(f"correlate takes two vectors, not shapes {x.shape} and {y.shape}")
    if len(y) > len(x):
        return mx.conjugate(correlate(y, x, mode)[::-1])
    taps = len(y)
    pads = {"full": (taps - 1, taps - 1), "same": (taps // 2, (taps - 1) // 2), "valid": (0, 0)}
    if mode not in pads:
        raise ArgumentError(f"correlate: mode must be 'full', 'same' or 'valid', not {mode!r}")
    return _valid(mx.pad(x, pads[mode]), mx.conjugate(y))
