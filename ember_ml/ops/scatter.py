"""Segment reductions and scatter ops: values combined by index."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, Op, around, composite, host_checked, op
from ember_ml._core.errors import ArgumentError, IndexOutOfRangeError, ShapeError
from ember_ml._core.indexing import check_range, host_array
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.ops._arguments import normalize_axis
from ember_ml.ops.indexing import index, ravel_multi_index
from ember_ml.ops.manipulation import moveaxis, reshape
from ember_ml.ops.reduction import max, min

__all__ = [
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_mean",
    "scatter_min",
    "scatter_mul",
    "scatter_nd",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "unsorted_segment_max",
    "unsorted_segment_mean",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sum",
]


def _check_slots(name: str, arguments: dict[str, Any]) -> None:
    _, ids, count = list(arguments.values())[:3]
    where = f"{name} into {'as many slots as needed' if count is None else f'{count} slots'}"
    check_range(host_array(ids), 2**63 if count is None else count, where, negative=False)


def _check_tuples(name: str, arguments: dict[str, Any]) -> None:
    array, shape = host_array(arguments["indices"]), tuple(arguments["shape"])
    if array is not None and array.ndim:
        for axis, length in zip(range(array.shape[-1]), shape, strict=False):
            where = f"{name} along axis {axis} of shape {shape}"
            check_range(array[..., axis], length, where, negative=False)


def slots_needed(name: str, ids: Tensor) -> int:
    """Return the number of slots the indices need, read from the device."""
    if ids.size == 0:
        return 0
    if int(min(ids)) < 0:
        raise IndexOutOfRangeError(f"{name}: indices must not be negative; got {int(min(ids))}")
    return int(max(ids)) + 1


def _sized(op: Op) -> Callable[..., Tensor]:
    """Read the number of segments before a tape records the call."""
    name, dispatch = op.name, op.function

    def call(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None) -> Tensor:
        if num_segments is None and isinstance(segment_ids, EmberTensor):
            num_segments = slots_needed(name, segment_ids)
        return dispatch(data, segment_ids, num_segments)

    return call


@around(_sized)
@host_checked(_check_slots)
@op(rule=rules.NUMERIC)
def segment_sum(
    data: TensorLike, segment_ids: IndexLike, num_segments: int | None = None
) -> Tensor:
    """Return the sum of each segment: out[s] = sum of data[i] with segment_ids[i] == s.

    An empty segment is 0.

    Args:
        data: Values; the first axis is divided into segments.
        segment_ids: Segment of each value along the first axis, in any order.
        num_segments: Number of segments. Default: the largest id + 1, which is read from the
            device.
    """


@around(_sized)
@host_checked(_check_slots)
@op(rule=rules.NUMERIC)
def segment_prod(
    data: TensorLike, segment_ids: IndexLike, num_segments: int | None = None
) -> Tensor:
    """Return the product of each segment; an empty segment is 0.

    Args:
        data: Values; the first axis is divided into segments.
        segment_ids: Segment of each value along the first axis, in any order.
        num_segments: Number of segments. Default: the largest id + 1, which is read from the
            device.
    """


@around(_sized)
@host_checked(_check_slots)
@op(rule=rules.FLOAT)
def segment_mean(
    data: TensorLike, segment_ids: IndexLike, num_segments: int | None = None
) -> Tensor:
    """Return the mean of each segment; an empty segment is 0.

    Args:
        data: Values; the first axis is divided into segments.
        segment_ids: Segment of each value along the first axis, in any order.
        num_segments: Number of segments. Default: the largest id + 1, which is read from the
            device.
    """


@around(_sized)
@host_checked(_check_slots)
@op(rule=rules.ORDERED)
def segment_max(
    data: TensorLike, segment_ids: IndexLike, num_segments: int | None = None
) -> Tensor:
    """Return the maximum of each segment; an empty segment is 0.

    Args:
        data: Values; the first axis is divided into segments.
        segment_ids: Segment of each value along the first axis, in any order.
        num_segments: Number of segments. Default: the largest id + 1, which is read from the
            device.
    """


@around(_sized)
@host_checked(_check_slots)
@op(rule=rules.ORDERED)
def segment_min(
    data: TensorLike, segment_ids: IndexLike, num_segments: int | None = None
) -> Tensor:
    """Return the minimum of each segment; an empty segment is 0.

    Args:
        data: Values; the first axis is divided into segments.
        segment_ids: Segment of each value along the first axis, in any order.
        num_segments: Number of segments. Default: the largest id + 1, which is read from the
            device.
    """


unsorted_segment_sum = segment_sum
unsorted_segment_prod = segment_prod
unsorted_segment_mean = segment_mean
unsorted_segment_max = segment_max
unsorted_segment_min = segment_min

AGGREGATIONS: dict[str, Callable[..., Tensor]] = {
    "add": segment_sum,
    "sum": segment_sum,
    "mean": segment_mean,
    "max": segment_max,
    "min": segment_min,
    "mul": segment_prod,
    "prod": segment_prod,
}


@host_checked(_check_slots)
@composite
def scatter(
    values: TensorLike,
    indices: IndexLike,
    dim_size: int | None = None,
    aggr: str = "add",
    axis: int = 0,
) -> Tensor:
    """Return the values combined by slot along an axis.

    Args:
        values: Values to scatter; if there are more than indices, only the leading ones count.
        indices: Vector with the slot of each value.
        dim_size: Number of slots. Default: the largest index + 1, or 0 without indices.
        aggr: "add" (or "sum"), "mean", "max", "min", "mul" (or "prod"). An empty slot is 0.
        axis: Axis of `values` to scatter along.
    """
    if aggr not in AGGREGATIONS:
        raise ArgumentError(
            f"scatter: aggr must be one of {', '.join(map(repr, AGGREGATIONS))}; got {aggr!r}"
        )
    axis = normalize_axis("scatter", axis, values.ndim)
    if indices.ndim != 1 or indices.shape[0] > values.shape[axis]:
        raise ShapeError(
            f"scatter: indices have shape {indices.shape}; expected a vector of at most "
            f"{values.shape[axis]} indices, the length of axis {axis} of shape {values.shape}"
        )
    leading = index(moveaxis(values, axis, 0), slice(indices.shape[0]))
    return moveaxis(AGGREGATIONS[aggr](leading, indices, dim_size), 0, axis)


@host_checked(_check_slots)
@composite
def scatter_add(
    values: TensorLike, indices: IndexLike, dim_size: int | None = None, axis: int = 0
) -> Tensor:
    """Return the sum of the values of each slot; see `scatter`.

    Args:
        values: Values to scatter; if there are more than indices, only the leading ones count.
        indices: Vector with the slot of each value.
        dim_size: Number of slots. Default: the largest index + 1, or 0 without indices.
        axis: Axis of `values` to scatter along.
    """
    return scatter(values, indices, dim_size, "add", axis)


@host_checked(_check_slots)
@composite
def scatter_mean(
    values: TensorLike, indices: IndexLike, dim_size: int | None = None, axis: int = 0
) -> Tensor:
    """Return the mean of the values of each slot; see `scatter`.

    Args:
        values: Values to scatter; if there are more than indices, only the leading ones count.
        indices: Vector with the slot of each value.
        dim_size: Number of slots. Default: the largest index + 1, or 0 without indices.
        axis: Axis of `values` to scatter along.
    """
    return scatter(values, indices, dim_size, "mean", axis)


@host_checked(_check_slots)
@composite
def scatter_max(
    values: TensorLike, indices: IndexLike, dim_size: int | None = None, axis: int = 0
) -> Tensor:
    """Return the maximum of the values of each slot; see `scatter`.

    Args:
        values: Values to scatter; if there are more than indices, only the leading ones count.
        indices: Vector with the slot of each value.
        dim_size: Number of slots. Default: the largest index + 1, or 0 without indices.
        axis: Axis of `values` to scatter along.
    """
    return scatter(values, indices, dim_size, "max", axis)


@host_checked(_check_slots)
@composite
def scatter_min(
    values: TensorLike, indices: IndexLike, dim_size: int | None = None, axis: int = 0
) -> Tensor:
    """Return the minimum of the values of each slot; see `scatter`.

    Args:
        values: Values to scatter; if there are more than indices, only the leading ones count.
        indices: Vector with the slot of each value.
        dim_size: Number of slots. Default: the largest index + 1, or 0 without indices.
        axis: Axis of `values` to scatter along.
    """
    return scatter(values, indices, dim_size, "min", axis)


@host_checked(_check_slots)
@composite
def scatter_mul(
    values: TensorLike, indices: IndexLike, dim_size: int | None = None, axis: int = 0
) -> Tensor:
    """Return the product of the values of each slot; see `scatter`.

    Args:
        values: Values to scatter; if there are more than indices, only the leading ones count.
        indices: Vector with the slot of each value.
        dim_size: Number of slots. Default: the largest index + 1, or 0 without indices.
        axis: Axis of `values` to scatter along.
    """
    return scatter(values, indices, dim_size, "mul", axis)


@host_checked(_check_tuples)
@composite
def scatter_nd(indices: IndexLike, updates: TensorLike, shape: Sequence[int]) -> Tensor:
    """Return zeros with updates[i] added at tuple(indices[i]).

    Args:
        indices: Integers; the last axis holds one index for each of the leading axes of the result.
        updates: Values, of shape indices.shape[:-1] + shape[indices.shape[-1]:].
        shape: Shape of the result.
    """
    depth = indices.shape[-1] if indices.ndim else 0
    shape = tuple(shape)
    if not 1 <= depth <= len(shape) or updates.shape != (*indices.shape[:-1], *shape[depth:]):
        raise ShapeError(
            f"scatter_nd: indices of shape {indices.shape} and updates of shape {updates.shape} "
            f"do not fit shape {shape}"
        )
    count = math.prod(indices.shape[:-1])
    tuples = reshape(indices, (count, depth))
    places = ravel_multi_index(
        [index(tuples, (slice(None), at)) for at in range(depth)], shape[:depth]
    )
    rows = reshape(updates, (count, *shape[depth:]))
    return reshape(segment_sum(rows, places, math.prod(shape[:depth])), shape)
