"""Dynamic slices: fixed size, start given as a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.indexing import batched_like


def _within(x: mx.array, starts: Any, sizes: Any) -> mx.array:
    """Clamp the starts so that the slice lies within x; MLX would read out of bounds."""
    lengths = mx.array(x.shape, mx.int64)
    starts = starts.astype(mx.int64)
    starts = mx.where(starts < 0, starts + lengths, starts)
    return mx.clip(starts, 0, lengths - mx.array(sizes, mx.int64))


def dynamic_slice(x: mx.array, starts: mx.array, sizes: Sequence[int]) -> mx.array:
    if x.ndim == 0 or 0 in sizes:
        return x.reshape(()) if x.ndim == 0 else mx.zeros(sizes, x.dtype)
    return mx.slice(x, _within(x, starts, sizes), tuple(range(x.ndim)), sizes)


def dynamic_update_slice(x: mx.array, update: mx.array, starts: mx.array) -> mx.array:
    if x.ndim == 0 or update.size == 0:
        return mx.contiguous(update if x.ndim == 0 else x)
    axes = tuple(range(x.ndim))
    places = _within(x, starts, update.shape)
    update = batched_like(update, mx.slice(x, places, axes, update.shape))
    return mx.slice_update(x, update, places, axes)
