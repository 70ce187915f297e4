"""Scatter and segment reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml._core.errors import IndexOutOfRangeError, ShapeError
from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for
from ember_ml.backend.numpy import kernel_calls as native

_ADD_SEGMENTS = Kernel("add_segments", "pppiii")


def _count(ids: np.ndarray, data: np.ndarray, num_segments: int | None) -> int:
    """Check the ids and return the number of segments."""
    if ids.ndim != 1 or data.shape[:1] != ids.shape:
        raise ShapeError(f"segment_ids of shape {ids.shape} for data of shape {data.shape}")
    low, high = (int(ids.min()), int(ids.max())) if ids.size else (0, -1)
    count = high + 1 if num_segments is None else num_segments
    if low < 0 or high >= count:
        raise IndexOutOfRangeError(
            f"segment {low if low < 0 else high} is out of range for {count} segments"
        )
    return count


def _reduce(ufunc: Any, data: np.ndarray, ids: np.ndarray, num_segments: int | None) -> np.ndarray:
    """Sort the data by segment and reduce each run."""
    out = np.zeros((_count(ids, data, num_segments), *data.shape[1:]), data.dtype)
    if data.size:
        order = np.argsort(ids, kind="stable")
        present, starts = np.unique(ids[order], return_index=True)
        dtype = np.float32 if data.dtype == np.float16 else data.dtype
        out[present] = ufunc.reduceat(data[order], starts, axis=0, dtype=dtype)
    return out


def segment_sum(
    data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None = None
) -> np.ndarray:
    if not native.is_served(data):
        return _reduce(np.add, data, segment_ids, num_segments)
    out = np.zeros((_count(segment_ids, data, num_segments), *data.shape[1:]), data.dtype)
    data, ids = np.ascontiguousarray(data), np.ascontiguousarray(segment_ids, np.int64)
    columns = data.size // len(data)
    threads = min(threads_for(data.size), columns)
    suffix, addresses = SUFFIXES[data.dtype.char], [pointer(array) for array in (data, ids, out)]
    _ADD_SEGMENTS(suffix, *addresses, len(data), columns, threads)
    return out


def segment_prod(
    data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None = None
) -> np.ndarray:
    return _reduce(np.multiply, data, segment_ids, num_segments)


def segment_max(
    data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None = None
) -> np.ndarray:
    return _reduce(np.maximum, data, segment_ids, num_segments)


def segment_min(
    data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None = None
) -> np.ndarray:
    return _reduce(np.minimum, data, segment_ids, num_segments)


def segment_mean(
    data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None = None
) -> np.ndarray:
    wide = data.astype(np.float32) if data.dtype == np.float16 else data
    total = _reduce(np.add, wide, segment_ids, num_segments)
    counts = np.bincount(segment_ids.astype(np.intp), minlength=total.shape[0])
    counts = np.maximum(counts, 1).astype(np.real(total).dtype)
    return (total / counts.reshape(-1, *[1] * (data.ndim - 1))).astype(data.dtype)
