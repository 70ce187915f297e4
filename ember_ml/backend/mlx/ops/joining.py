"""Joining and splitting."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from ember_ml._core.errors import AxisError


def concat(arrays: Sequence[mx.array], axis: int | None = 0) -> mx.array:
    if len(arrays) == 1 and axis is not None and not -arrays[0].ndim <= axis < arrays[0].ndim:
        # MLX returns a single array as it is
        raise AxisError(f"concat: axis={axis} is out of range for the shape {arrays[0].shape}")
    return mx.concatenate(arrays, axis)


def stack(arrays: Sequence[mx.array], axis: int = 0) -> mx.array:
    if axis is None:
        raise TypeError("axis must be an integer")  # MLX would flatten the arrays
    return mx.stack(arrays, axis)


def split_at(x: mx.array, indices: Sequence[int], axis: int = 0) -> list[mx.array]:
    return mx.split(x, list(indices), axis)


def unstack(x: mx.array, axis: int = 0) -> list[mx.array]:
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"unstack: axis={axis} is out of range for the shape {x.shape}")
    count = x.shape[axis]
    if not count:
        return []
    # A split has one gradient array; MLX pads the gradient of each slice.
    return [mx.squeeze(part, axis) for part in mx.split(x, count, axis)]
