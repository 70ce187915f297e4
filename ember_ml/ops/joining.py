"""Concatenation, stacking and splitting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ember_ml._core.dispatch import composite, op
from ember_ml._core.errors import ArgumentError, IndexOutOfRangeError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike, TensorsLike
from ember_ml.ops._arguments import normalize_axis
from ember_ml.ops.indexing import index, like, take
from ember_ml.ops.manipulation import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_to,
    expand_dims,
    matrix_transpose,
    moveaxis,
    ravel,
)

__all__ = [
    "append",
    "array_split",
    "chunk",
    "column_stack",
    "concat",
    "concatenate",
    "delete",
    "dstack",
    "hstack",
    "insert",
    "split",
    "stack",
    "unstack",
    "vstack",
]


@op
def concat(arrays: TensorsLike, axis: int | None = 0) -> Tensor:
    """Return the tensors joined along an existing axis.

    Args:
        arrays: Tensors of equal shape, except along `axis`.
        axis: Axis to join along. None flattens all tensors first.
    """


concatenate = concat


@op
def stack(arrays: TensorsLike, axis: int = 0) -> Tensor:
    """Return the tensors joined along a new axis.

    Args:
        arrays: Tensors of equal shape.
        axis: Position of the new axis.
    """


@composite
def vstack(arrays: TensorsLike) -> Tensor:
    """Return the tensors, with at least two axes each, joined along the first axis.

    Args:
        arrays: Tensors to join.
    """
    return concat([atleast_2d(x) for x in arrays], axis=0)


@composite
def hstack(arrays: TensorsLike) -> Tensor:
    """Return the tensors joined along the second axis; vectors along their only axis.

    Args:
        arrays: Tensors to join.
    """
    tensors = [atleast_1d(x) for x in arrays]
    return concat(tensors, axis=0 if tensors[0].ndim == 1 else 1)


@composite
def dstack(arrays: TensorsLike) -> Tensor:
    """Return the tensors, with at least three axes each, joined along the third axis.

    Args:
        arrays: Tensors to join.
    """
    return concat([atleast_3d(x) for x in arrays], axis=2)


@composite
def column_stack(arrays: TensorsLike) -> Tensor:
    """Return the tensors joined along the second axis; vectors become columns.

    Args:
        arrays: Tensors to join.
    """
    return concat([x if x.ndim >= 2 else matrix_transpose(atleast_2d(x)) for x in arrays], axis=1)


def _along(x: Tensor, axis: int, key: int | slice) -> Tensor:
    """Return x[..., key, ...] on one axis."""
    return index(x, (slice(None),) * axis + (key,))


@composite
def split_at(x: TensorLike, indices: Sequence[int], axis: int = 0) -> list[Tensor]:
    """Return x split before each of the indices along an axis.

    Args:
        x: Input tensor.
        indices: Ascending positions to split at.
        axis: Axis to split.
    """
    edges = [0, *indices, x.shape[axis]]
    return [_along(x, axis, slice(start, stop)) for start, stop in pairwise(edges)]


@composite
def split(x: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Return x split into equal parts along an axis, or before each index.

    Args:
        x: Input tensor.
        indices_or_sections: Number of parts, or the positions to split at.
        axis: Axis to split.
    """
    axis = normalize_axis("split", axis, x.ndim)
    length = x.shape[axis]
    if not isinstance(indices_or_sections, int):
        return split_at(x, [slice(at, None).indices(length)[0] for at in indices_or_sections], axis)
    if indices_or_sections < 1 or length % indices_or_sections:
        raise ShapeError(
            f"split: axis {axis} of shape {x.shape} is not divisible into {indices_or_sections} "
            "equal parts; use array_split for unequal parts"
        )
    size = length // indices_or_sections
    return split_at(x, [size * part for part in range(1, indices_or_sections)], axis)


@composite
def array_split(
    x: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0
) -> list[Tensor]:
    """Return x split along an axis; the first parts are longer by one if needed.

    Args:
        x: Input tensor.
        indices_or_sections: Number of parts, or the positions to split at.
        axis: Axis to split.
    """
    if not isinstance(indices_or_sections, int):
        return split(x, indices_or_sections, axis)
    if indices_or_sections < 1:
        raise ArgumentError(f"array_split: expected at least one part; got {indices_or_sections}")
    axis = normalize_axis("array_split", axis, x.ndim)
    size, longer = divmod(x.shape[axis], indices_or_sections)
    cuts = [size * part + min(part, longer) for part in range(1, indices_or_sections)]
    return split_at(x, cuts, axis)


@composite
def chunk(x: TensorLike, chunks: int, axis: int = 0) -> list[Tensor]:
    """Return x split along an axis into at most `chunks` parts of equal length, except the last.

    Args:
        x: Input tensor.
        chunks: Maximum number of parts.
        axis: Axis to split.
    """
    if chunks < 1:
        raise ArgumentError(f"chunk: chunks must be positive; got {chunks}")
    axis = normalize_axis("chunk", axis, x.ndim)
    length = x.shape[axis]
    if length == 0:
        return split_at(x, [0] * (chunks - 1), axis)
    return split_at(x, range(-(-length // chunks), length, -(-length // chunks)), axis)


@composite
def unstack(x: TensorLike, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of x along an axis, without that axis.

    Args:
        x: Input tensor.
        axis: Axis to unstack.
    """
    axis = normalize_axis("unstack", axis, x.ndim)
    return tuple(_along(x, axis, at) for at in range(x.shape[axis]))


@composite
def append(x: TensorLike, values: TensorLike, axis: int | None = None) -> Tensor:
    """Return x and the values joined along an axis.

    Args:
        x: Input tensor.
        values: Tensor to append.
        axis: Axis to join along. Default: both flattened.
    """
    return concat([x, values], axis=axis)


def _places(op: str, indices: int | Sequence[int], length: int, end: int) -> list[int]:
    """Return indices counted from the front, checked to be below `end`."""
    places = []
    for at in [indices] if isinstance(indices, int) else indices:
        place = at + length if at < 0 else at
        if not 0 <= place < end:
            raise IndexOutOfRangeError(f"{op}: index {at} is out of range for length {length}")
        places.append(int(place))
    return places


@composite
def delete(x: TensorLike, indices: int | slice | Sequence[int], axis: int | None = None) -> Tensor:
    """Return x without the elements at the indices along an axis.

    Args:
        x: Input tensor.
        indices: Position, slice or sequence of positions to remove.
        axis: Axis to remove from. Default: the flattened tensor.
    """
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis("delete", axis, x.ndim)
    length = x.shape[axis]
    if isinstance(indices, slice):
        dropped = set(range(*indices.indices(length)))
    else:
        dropped = set(_places("delete", indices, length, length))
    return take(x, [at for at in range(length) if at not in dropped], axis=axis)


@composite
def insert(
    x: TensorLike, indices: int | Sequence[int], values: TensorLike, axis: int | None = None
) -> Tensor:
    """Return x with values inserted before the indices along an axis.

    Args:
        x: Input tensor.
        indices: Position or positions in x to insert before.
        values: Values to insert: any number before one index, or one per index. Cast to the dtype
            of x.
        axis: Axis to insert along. Default: the flattened tensor.
    """
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis("insert", axis, x.ndim)
    length = x.shape[axis]
    places = _places("insert", indices, length, length + 1)
    tensor = like(values, x)
    if isinstance(indices, int) and tensor.ndim:
        tensor = expand_dims(tensor, tuple(range(x.ndim - tensor.ndim)))
        tensor = moveaxis(tensor, 0, axis)
        places = places * tensor.shape[axis]
    shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
    joined = concat([x, broadcast_to(tensor, shape)], axis=axis)
    order = sorted(
        range(length + len(places)),
        key=lambda at: (at, 1) if at < length else (places[at - length], 0),
    )
    return take(joined, order, axis=axis)
