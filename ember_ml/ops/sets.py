"""Distinct elements and set operations."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml._core.dispatch import composite, op, unary
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._arguments import normalize_axis
from ember_ml.ops.comparison import equal
from ember_ml.ops.gradients import stop_gradient
from ember_ml.ops.indexing import flatnonzero, index, take
from ember_ml.ops.joining import concat
from ember_ml.ops.manipulation import expand_dims, flatten, moveaxis, ravel

__all__ = [
    "UniqueAll",
    "UniqueCounts",
    "UniqueInverse",
    "intersect1d",
    "setdiff1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAll(NamedTuple):
    """Distinct elements, their first positions, the inverse mapping, and their counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct elements and their counts."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct elements and, for each element of the input, the index of its value."""

    values: Tensor
    inverse_indices: Tensor


class UniqueRows(NamedTuple):
    """First position of each distinct row, the inverse mapping, and the counts."""

    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


@op
def unique_all(x: TensorLike) -> UniqueAll:
    """Return the distinct elements in ascending order, with positions and counts.

    Every NaN counts as distinct.

    Args:
        x: Input tensor.
    """


@op
def unique_rows(x: TensorLike) -> UniqueRows:
    """Return the distinct rows of a matrix, in lexicographic order.

    Args:
        x: Matrix.
    """


@unary
def unique_values(x: TensorLike) -> Tensor:
    """Return the distinct elements in ascending order; every NaN counts as distinct.

    Args:
        x: Input tensor.
    """


@composite
def unique_counts(x: TensorLike) -> UniqueCounts:
    """Return the distinct elements in ascending order and their counts.

    Args:
        x: Input tensor.
    """
    unique = unique_all(x)
    return UniqueCounts(unique.values, unique.counts)


@composite
def unique_inverse(x: TensorLike) -> UniqueInverse:
    """Return the distinct elements in ascending order and the inverse mapping.

    Args:
        x: Input tensor.
    """
    unique = unique_all(x)
    return UniqueInverse(unique.values, unique.inverse_indices)


@composite
def unique(
    x: TensorLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Return the distinct elements in ascending order, or the distinct slices along an axis.

    Args:
        x: Input tensor.
        return_index: Whether to also return the first position of each.
        return_inverse: Whether to also return, for each element or slice, the index of its value.
        return_counts: Whether to also return the counts.
        axis: Axis along which slices are compared. Default: compare elements.
    """
    extras: tuple[Tensor, ...]
    if axis is None:
        values, *others = unique_all(x)
        extras = tuple(others)
    else:
        axis = normalize_axis("unique", axis, x.ndim)
        rows = flatten(expand_dims(moveaxis(x, axis, 0), -1), 1)
        extras = tuple(unique_rows(rows))
        values = take(stop_gradient(x), extras[0], axis=axis)
    wanted = (return_index, return_inverse, return_counts)
    chosen = [extra for extra, asked in zip(extras, wanted, strict=True) if asked]
    return (values, *chosen) if chosen else values


@composite
def union1d(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the distinct elements of both tensors, in ascending order.

    Args:
        x: First tensor.
        y: Second tensor.
    """
    return unique_values(concat([ravel(x), ravel(y)]))


@composite
def intersect1d(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the distinct elements that occur in both tensors, in ascending order.

    Args:
        x: First tensor.
        y: Second tensor.
    """
    values, counts = unique_counts(concat([unique_values(x), unique_values(y)]))
    return index(values, equal(counts, 2))


@composite
def setdiff1d(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the distinct elements of x that do not occur in y, in ascending order.

    Args:
        x: Input tensor.
        y: Elements to exclude.
    """
    own, other = unique_values(x), unique_values(y)
    joined = unique_all(concat([other, own]))
    places = index(joined.inverse_indices, slice(other.shape[0], None))
    return take(own, flatnonzero(equal(take(joined.counts, places), 1)))
