"""Sorting. MLX sorts in ascending order only and returns uint32 indices."""

from __future__ import annotations

from typing import Any

import mlx.core as mx


def _flip(x: mx.array, axis: int) -> mx.array:
    key = [slice(None)] * x.ndim
    key[axis] = slice(None, None, -1)
    return x[tuple(key)]


def sort(x: mx.array, axis: int = -1, *, descending: bool = False, stable: bool = True) -> mx.array:
    if axis is None:
        raise TypeError("axis must be an integer")
    out = mx.sort(x, axis)
    return _flip(out, axis) if descending else out


def argsort(
    x: mx.array, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> mx.array:
    """Return the sorting indices; a descending sort runs on the reversed axis to stay stable."""
    if axis is None:
        raise TypeError("axis must be an integer")
    if not descending:
        return mx.argsort(x, axis).astype(mx.int64)
    backwards = mx.argsort(_flip(x, axis), axis).astype(mx.int64)
    return _flip(x.shape[axis] - 1 - backwards, axis)


def topk(x: mx.array, k: int, axis: int = -1, *, largest: bool = True, sorted: bool = True) -> Any:
    order = argsort(x, axis, descending=largest)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"k={k} is out of range for an axis of length {x.shape[axis]}")
    indices = mx.stop_gradient(mx.take(order, mx.arange(k), axis))
    return mx.take_along_axis(x, indices, axis), indices


def searchsorted(
    x1: mx.array, x2: mx.array, sorter: mx.array | None = None, *, side: str = "left"
) -> mx.array:
    if x1.ndim != 1:
        raise ValueError(f"x1 must be a vector; its shape is {x1.shape}")
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right', not {side!r}")
    x1 = x1 if sorter is None else x1[sorter]
    return mx.searchsorted(x1, x2, side).astype(mx.int64)
