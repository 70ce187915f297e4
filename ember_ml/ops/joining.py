"""Tensors put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ember_ml._core.dispatch import composite, op
from ember_ml._core.errors import ArgumentError, IndexOutOfRangeError, ShapeError
from ember_ml._core.indexing import normalize_axis
from ember_ml._core.tensor import Tensor, TensorLike
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
def concat(arrays: Sequence[TensorLike], axis: int | None = 0) -> Tensor:
    """The tensors one after another along an axis that they have; without one, all flattened."""


concatenate = concat


@op
def stack(arrays: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """The tensors, all of one shape, one after another along a new axis."""


@composite
def vstack(arrays: Sequence[TensorLike]) -> Tensor:
    """The tensors, of two axes at least, along the first."""
    return concat([atleast_2d(x) for x in arrays], axis=0)


@composite
def hstack(arrays: Sequence[TensorLike]) -> Tensor:
    """The tensors along the second axis; along the only one if they have one."""
    tensors = [atleast_1d(x) for x in arrays]
    return concat(tensors, axis=0 if tensors[0].ndim == 1 else 1)


@composite
def dstack(arrays: Sequence[TensorLike]) -> Tensor:
    """The tensors, of three axes at least, along the third."""
    return concat([atleast_3d(x) for x in arrays], axis=2)


@composite
def column_stack(arrays: Sequence[TensorLike]) -> Tensor:
    """Vectors as the columns of a matrix, matrices beside each other."""
    return concat([x if x.ndim >= 2 else matrix_transpose(atleast_2d(x)) for x in arrays], axis=1)


def _along(x: Tensor, axis: int, key: Any) -> Tensor:
    """x[..., key, ...] on one axis."""
    return index(x, (slice(None),) * axis + (key,))


@composite
def split_at(x: TensorLike, indices: Sequence[int], axis: int = 0) -> list[Tensor]:
    """x cut before each of the indices along an axis."""
    edges = [0, *indices, x.shape[axis]]
    return [_along(x, axis, slice(start, stop)) for start, stop in pairwise(edges)]


@composite
def split(x: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """x in equal parts along an axis, or cut before each of the indices."""
    axis = normalize_axis("split", axis, x.ndim)
    length = x.shape[axis]
    if not isinstance(indices_or_sections, int):
        return split_at(x, [slice(at, None).indices(length)[0] for at in indices_or_sections], axis)
    if indices_or_sections < 1 or length % indices_or_sections:
        raise ShapeError(
            f"split: axis {axis} of the shape {x.shape} has length {length}, "
            f"which is not {indices_or_sections} equal parts; array_split makes unequal ones"
        )
    size = length // indices_or_sections
    return split_at(x, [size * part for part in range(1, indices_or_sections)], axis)


@composite
def array_split(
    x: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0
) -> list[Tensor]:
    """x in parts along an axis, the first ones longer by one where it does not divide."""
    if not isinstance(indices_or_sections, int):
        return split(x, indices_or_sections, axis)
    if indices_or_sections < 1:
        raise ArgumentError(f"array_split: {indices_or_sections} parts; one at least is needed")
    axis = normalize_axis("array_split", axis, x.ndim)
    size, longer = divmod(x.shape[axis], indices_or_sections)
    cuts = [size * part + min(part, longer) for part in range(1, indices_or_sections)]
    return split_at(x, cuts, axis)


@composite
def chunk(x: TensorLike, chunks: int, axis: int = 0) -> list[Tensor]:
    """x in at most `chunks` parts along an axis, of one length but for the last."""
    if chunks < 1:
        raise ArgumentError(f"chunk: chunks={chunks} must be positive")
    axis = normalize_axis("chunk", axis, x.ndim)
    length = x.shape[axis]
    if length == 0:
        return split_at(x, [0] * (chunks - 1), axis)
    return split_at(x, range(-(-length // chunks), length, -(-length // chunks)), axis)


@composite
def unstack(x: TensorLike, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of x along an axis, without that axis."""
    axis = normalize_axis("unstack", axis, x.ndim)
    return tuple(_along(x, axis, at) for at in range(x.shape[axis]))


@composite
def append(x: TensorLike, values: TensorLike, axis: int | None = None) -> Tensor:
    """x and then the values along an axis; without one, both flattened."""
    return concat([x, values], axis=axis)


def _places(op: str, indices: int | Sequence[int], length: int, end: int) -> list[int]:
    """Indices counted from the front, checked to be below `end`."""
    found = []
    for at in [indices] if isinstance(indices, int) else indices:
        place = at + length if at < 0 else at
        if not 0 <= place < end:
            raise IndexOutOfRangeError(f"{op}: index {at} is out of range for length {length}")
        found.append(int(place))
    return found


@composite
def delete(x: TensorLike, indices: int | slice | Sequence[int], axis: int | None = None) -> Tensor:
    """x without what stands at the indices along an axis; without one, of the flattened x."""
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
    """x with values put in before the indices along an axis; without one, into the flattened x.

    Before one index, `values` may hold several; of several indices each gets one.
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
