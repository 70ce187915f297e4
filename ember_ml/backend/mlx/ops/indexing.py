"""Selection of elements. MLX does not check indices for range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.core import where as where

from ember_ml._core.errors import IndexOutOfRangeError, ShapeError
from ember_ml.backend.mlx import indexing
from ember_ml.backend.mlx.indexing import fixed, last_values
from ember_ml.backend.mlx.indexing import getitem as getitem


def setitem(x: mx.array, value: mx.array, key: Any) -> mx.array:
    return indexing.setitem(x, key, value)


def additem(x: mx.array, value: mx.array, key: Any) -> mx.array:
    return indexing.additem(x, key, value)


def take(x: mx.array, indices: mx.array, axis: int | None = None) -> mx.array:
    if x.size:
        return mx.take(x, fixed(indices), axis)
    if indices.size and (axis is None or x.shape[axis] == 0):
        raise IndexOutOfRangeError(f"take: axis={axis} of the shape {x.shape} is empty")
    shape = mx.take(x, indices, axis).shape
    return mx.zeros(shape, x.dtype)  # MLX crashes in the gradient of an empty gather


def _check_rank(name: str, x: mx.array, indices: mx.array) -> None:
    if x.ndim != indices.ndim or x.ndim == 0:
        raise ShapeError(
            f"{name}: x {x.shape} and indices {indices.shape} must have the same number of axes, "
            "at least 1"
        )


def take_along_axis(x: mx.array, indices: mx.array, axis: int = -1) -> mx.array:
    _check_rank("take_along_axis", x, indices)
    return mx.take_along_axis(x, fixed(indices), axis)


def put_along_axis(x: mx.array, indices: mx.array, values: mx.array, axis: int = -1) -> mx.array:
    _check_rank("put_along_axis", x, indices)
    shape = list(x.shape)
    shape[axis] = indices.shape[axis]
    values = mx.broadcast_to(values, shape)
    if values.size == 0:
        return x
    indices = mx.broadcast_to(fixed(indices), shape)
    places = mx.take_along_axis(mx.arange(x.size).reshape(x.shape), indices, axis)
    return mx.put_along_axis(x, indices, last_values(places, x.size, values), axis)


def nonzero(x: mx.array) -> list[mx.array]:
    return [mx.array(positions) for positions in np.nonzero(np.array(x != 0))]


def argwhere(x: mx.array) -> mx.array:
    return mx.array(np.argwhere(np.array(x != 0)))


def unravel_index(indices: mx.array, shape: Sequence[int]) -> list[mx.array]:
    rest = indices.astype(mx.int64)
    out = []
    for length in reversed(shape):
        out.append(rest % length)
        rest = rest // length
    return out[::-1]


def ravel_multi_index(multi_index: Sequence[mx.array], shape: Sequence[int]) -> mx.array:
    out = mx.array(0, mx.int64)
    for part, length in zip(multi_index, shape, strict=True):
        out = out * length + part.astype(mx.int64)
    return out
