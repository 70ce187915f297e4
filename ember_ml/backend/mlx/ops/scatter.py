"""Scatter and segment reductions.

Segment ids in MLX arrays are read only if the number of segments depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from ember_ml._core.errors import IndexOutOfRangeError, ShapeError
from ember_ml.backend.mlx.custom import attach_vjp
from ember_ml.backend.mlx.indexing import fixed

_HALF = (mx.float16, mx.bfloat16)


def _count(data: mx.array, ids: mx.array, num_segments: int | None) -> int:
    if ids.ndim != 1 or data.shape[:1] != ids.shape:
        raise ShapeError(f"segment_ids of shape {ids.shape} for data of shape {data.shape}")
    if num_segments is not None:
        return num_segments
    if ids.size and int(ids.min().item()) < 0:
        raise IndexOutOfRangeError("a segment number is negative")
    return int(ids.max().item()) + 1 if ids.size else 0


def _zeros(data: mx.array, count: int) -> mx.array:
    return mx.zeros((count, *data.shape[1:]), data.dtype)


def segment_sum(data: mx.array, segment_ids: mx.array, num_segments: int | None = None) -> mx.array:
    zeros = _zeros(data, _count(data, segment_ids, num_segments))
    if data.size == 0:
        return zeros
    segment_ids = fixed(segment_ids)
    if data.dtype in _HALF:
        return (
            zeros.astype(mx.float32).at[segment_ids].add(data.astype(mx.float32)).astype(data.dtype)
        )
    return zeros.at[segment_ids].add(data)


def segment_mean(
    data: mx.array, segment_ids: mx.array, num_segments: int | None = None
) -> mx.array:
    wide = data.astype(mx.float32) if data.dtype in _HALF else data
    total = segment_sum(wide, segment_ids, num_segments)
    counts = segment_sum(mx.ones(segment_ids.shape), segment_ids, total.shape[0])
    counts = mx.maximum(counts, 1).reshape(-1, *[1] * (data.ndim - 1))
    return (total / counts).astype(data.dtype)


def _fold(
    data: mx.array, ids: mx.array, start: Any, method: str, num_segments: int | None
) -> mx.array:
    """Reduce each segment, starting from the element of `start` that belongs to it."""
    out = _zeros(data, _count(data, ids, num_segments))
    if data.size == 0:
        return out
    ids = fixed(ids)
    out[ids] = start
    return getattr(out.at[ids], method)(data)


def _extreme(data: mx.array, ids: mx.array, num_segments: int | None, method: str) -> mx.array:
    count = _count(data, ids, num_segments)

    def fold(data: mx.array, ids: mx.array) -> mx.array:
        out = _fold(data, ids, data, method, count)
        if data.size == 0 or not mx.issubdtype(data.dtype, mx.floating):
            return out
        nans = segment_sum(mx.isnan(data).astype(mx.int32), ids, out.shape[0])
        return mx.where(nans > 0, mx.array(mx.nan, data.dtype), out)  # MLX skips some NaNs

    def pullback(primals: Sequence[mx.array], g: mx.array, out: mx.array) -> list[mx.array]:
        data, ids = primals
        chosen = (data == out[ids]).astype(data.dtype)
        ties = mx.maximum(segment_sum(chosen, ids, count), 1)
        return [(g / ties)[ids] * chosen, mx.zeros_like(ids)]

    return attach_vjp(fold, pullback)(data, ids)


def segment_max(data: mx.array, segment_ids: mx.array, num_segments: int | None = None) -> mx.array:
    return _extreme(data, segment_ids, num_segments, "maximum")


def segment_min(data: mx.array, segment_ids: mx.array, num_segments: int | None = None) -> mx.array:
    return _extreme(data, segment_ids, num_segments, "minimum")


def segment_prod(
    data: mx.array, segment_ids: mx.array, num_segments: int | None = None
) -> mx.array:
    if data.dtype in _HALF:
        return segment_prod(data.astype(mx.float32), segment_ids, num_segments).astype(data.dtype)

    count = _count(data, segment_ids, num_segments)

    def fold(data: mx.array, ids: mx.array) -> mx.array:
        return _fold(data, ids, mx.ones_like(data), "multiply", count)

    def pullback(primals: Sequence[mx.array], g: mx.array, out: mx.array) -> list[mx.array]:
        """Return, for each element, the product of the others, without dividing by zero."""
        data, ids = primals
        is_zero = data == 0
        rest = mx.where(is_zero, 1, data)
        others = fold(rest, ids)[ids] / rest
        zeros = segment_sum(is_zero.astype(mx.int32), ids, count)[ids]
        others = mx.where(zeros - is_zero.astype(mx.int32) > 0, 0, others)
        return [g[ids] * mx.conj(others), mx.zeros_like(ids)]

    return attach_vjp(fold, pullback)(data, segment_ids)
