"""Diagonals."""

from __future__ import annotations

from typing import Any

import mlx.core as mx


def diagonal(x: mx.array, offset: int = 0, axis1: int = -2, axis2: int = -1) -> mx.array:
    """Return a diagonal of the matrices in two axes.

    An empty diagonal is a new array, because MLX may hang in a sum over an empty view.
    """
    out = mx.diagonal(x, offset, axis1, axis2)
    return out if out.size else mx.zeros(out.shape, out.dtype)


def diag_embed(x: mx.array, offset: int = 0, axis1: int = -2, axis2: int = -1) -> mx.array:
    size = x.shape[-1] + abs(offset)
    rows = mx.pad(x, [(0, 0)] * (x.ndim - 1) + [(max(-offset, 0), max(offset, 0))])
    out = mx.where(mx.eye(size, k=offset, dtype=mx.bool_), rows[..., None], mx.zeros((), x.dtype))
    return _moved(out, axis1, axis2)


def _moved(x: mx.array, axis1: int, axis2: int) -> mx.array:
    """Move the last two axes of x to axis1 and axis2."""
    if not all(-x.ndim <= axis < x.ndim for axis in (axis1, axis2)):
        raise ValueError(f"the result has {x.ndim} axes")
    places = axis1 % x.ndim, axis2 % x.ndim
    if places[0] == places[1]:
        raise ValueError("axis1 and axis2 are the same axis")
    order = list(range(x.ndim - 2))
    for place, axis in sorted(zip(places, (x.ndim - 2, x.ndim - 1), strict=True)):
        order.insert(place, axis)
    return mx.transpose(x, order)


def _block_diag(tensors: list[Any]) -> mx.array:
    blocks = [mx.atleast_2d(block) for block in tensors]
    if any(block.ndim > 2 for block in blocks):
        raise ValueError("the shapes must be those of matrices")
    width = sum(block.shape[1] for block in blocks)
    rows, before = [], 0
    for block in blocks:
        after = width - before - block.shape[1]
        rows.append(mx.pad(block, [(0, 0), (before, after)]))
        before += block.shape[1]
    return mx.concatenate(rows, 0)
