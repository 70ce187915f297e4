"""Scatter and segment reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ember_ml._core.errors import IndexOutOfRangeError, ShapeError
from ember_ml.backend.torch.nesting import is_tracked

_HALF = (torch.float16, torch.bfloat16)


def _prepare(data: torch.Tensor, ids: torch.Tensor, num_segments: int | None) -> tuple[Any, Any]:
    """Return zeros to write to, and the ids as torch expects them."""
    if ids.ndim != 1 or data.shape[:1] != ids.shape:
        raise ShapeError(
            f"segment_ids of shape {tuple(ids.shape)} for data of shape {tuple(data.shape)}"
        )
    if num_segments is None:
        num_segments = int(ids.max()) + 1 if ids.numel() else 0
    zeros = data.new_zeros((num_segments, *data.shape[1:]))
    return zeros, ids.long()


def _in_range(call: Callable[..., Any], *args: Any, **kwargs: Any) -> torch.Tensor:
    """Call a function whose RuntimeError means that an index is out of range."""
    try:
        return call(*args, **kwargs)
    except RuntimeError as error:
        if "out of bounds" in str(error):
            raise IndexOutOfRangeError(str(error)) from error
        raise


def _reduce(data: torch.Tensor, ids: torch.Tensor, start: Any, reduce: str) -> torch.Tensor:
    spread = ids.reshape(-1, *[1] * (data.ndim - 1)).expand(data.shape)
    return _in_range(start.scatter_reduce, 0, spread, data, reduce, include_self=False)


def segment_sum(
    data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int | None = None
) -> torch.Tensor:
    if data.dtype in _HALF:
        return segment_sum(data.float(), segment_ids, num_segments).to(data.dtype)
    zeros, ids = _prepare(data, segment_ids, num_segments)
    return _in_range(zeros.index_add, 0, ids, data)


def segment_prod(
    data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int | None = None
) -> torch.Tensor:
    if data.dtype in _HALF:
        return segment_prod(data.float(), segment_ids, num_segments).to(data.dtype)
    zeros, ids = _prepare(data, segment_ids, num_segments)
    if is_tracked(data):
        return _product(data, ids, zeros)
    return _reduce(data, ids, zeros, "prod")


def _product(data: torch.Tensor, ids: torch.Tensor, zeros: Any) -> torch.Tensor:
    """Return the product of each segment's values in a row, which torch can differentiate twice."""
    order = torch.argsort(ids, stable=True)
    empty = torch.zeros(len(zeros), dtype=ids.dtype, device=ids.device)
    counts = _in_range(empty.index_add, 0, ids, torch.ones_like(ids))
    before = torch.cumsum(counts, 0) - counts
    ordered = ids[order]
    places = torch.arange(len(ids), device=ids.device) - before[ordered]
    width = int(counts.max()) if len(ids) else 0
    rows = data.new_ones((len(zeros), width, *data.shape[1:]))
    rows = rows.index_put((ordered, places), data[order])
    filled = (counts > 0).reshape(-1, *[1] * (data.ndim - 1))
    return torch.where(filled, rows.prod(1), zeros)


def _extreme(
    data: torch.Tensor, ids: torch.Tensor, num_segments: int | None, reduce: str
) -> torch.Tensor:
    """Start from NaN: torch passes part of the gradient to an initial value equal to the result."""
    zeros, ids = _prepare(data, ids, num_segments)
    if not data.dtype.is_floating_point:
        return _reduce(data, ids, zeros, reduce)
    out = _reduce(data, ids, torch.full_like(zeros, torch.nan), reduce)
    filled = torch.zeros(len(zeros), dtype=torch.bool, device=data.device).index_fill(0, ids, True)
    return torch.where(filled.reshape(-1, *[1] * (data.ndim - 1)), out, zeros)


def segment_max(
    data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int | None = None
) -> torch.Tensor:
    return _extreme(data, segment_ids, num_segments, "amax")


def segment_min(
    data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int | None = None
) -> torch.Tensor:
    return _extreme(data, segment_ids, num_segments, "amin")


def segment_mean(
    data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int | None = None
) -> torch.Tensor:
    if data.dtype in _HALF:
        return segment_mean(data.float(), segment_ids, num_segments).to(data.dtype)
    total = segment_sum(data, segment_ids, num_segments)
    ones = torch.ones_like(segment_ids, dtype=data.real.dtype if data.is_complex() else data.dtype)
    counts = segment_sum(ones, segment_ids, total.shape[0]).clamp(min=1)
    return total / counts.reshape(-1, *[1] * (data.ndim - 1))
