"""Distinct elements."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml._core.dispatch import composite, op, unary
from ember_ml._core.indexing import normalize_axis
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.comparison import equal
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
    """Distinct elements, where each comes first, which of them each of x is, and how often."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct elements and how often each comes."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct elements and which of them each element of x is."""

    values: Tensor
    inverse_indices: Tensor


class UniqueRows(NamedTuple):
    """The first row of each kind, which kind each row is, and how many of a kind there are."""

    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


@op
def unique_all(x: TensorLike) -> UniqueAll:
    """The distinct elements in ascending order, and where they are; each NaN is one."""


@op
def unique_rows(x: TensorLike) -> UniqueRows:
    """The distinct rows of a matrix, in lexicographic order."""


@unary
def unique_values(x: TensorLike) -> Tensor:
    """The distinct elements in ascending order; each NaN is one of its own."""


@composite
def unique_counts(x: TensorLike) -> UniqueCounts:
    """The distinct elements in ascending order, and how often each comes."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


@composite
def unique_inverse(x: TensorLike) -> UniqueInverse:
    """The distinct elements in ascending order, and for each element of x which of them it is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


@composite
def unique(
    x: TensorLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements in ascending order, or the distinct slices along an axis.

    Args:
        x: the tensor.
        return_index: also give the index of the first of each kind.
        return_inverse: also give for each element (or slice) which kind it is.
        return_counts: also give how many there are of each kind.
        axis: the axis to compare slices along; without one, elements are compared.
    """
    extras: tuple[Tensor, ...]
    if axis is None:
        found = unique_all(x)
        values, extras = found.values, tuple(found[1:])
    else:
        axis = normalize_axis("unique", axis, x.ndim)
        rows = flatten(expand_dims(moveaxis(x, axis, 0), -1), 1)
        extras = tuple(unique_rows(rows))
        values = take(x, extras[0], axis=axis)
    wanted = (return_index, return_inverse, return_counts)
    chosen = [extra for extra, asked in zip(extras, wanted, strict=True) if asked]
    return (values, *chosen) if chosen else values


@composite
def union1d(x: TensorLike, y: TensorLike) -> Tensor:
    """The distinct elements of both, in ascending order."""
    return unique_values(concat([ravel(x), ravel(y)]))


@composite
def intersect1d(x: TensorLike, y: TensorLike) -> Tensor:
    """The distinct elements that are in both, in ascending order."""
    values, counts = unique_counts(concat([unique_values(x), unique_values(y)]))
    return index(values, equal(counts, 2))


@composite
def setdiff1d(x: TensorLike, y: TensorLike) -> Tensor:
    """The distinct elements of x that are not in y, in ascending order."""
    own, other = unique_values(x), unique_values(y)
    found = unique_all(concat([other, own]))
    places = index(found.inverse_indices, slice(other.shape[0], None))
    is_own = take(found.counts, places)
    return take(own, flatnonzero(equal(is_own, 1)))
