"""Sorting, top-k and binary search. NaN is larger than every number."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, composite, op
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = ["TopK", "argsort", "bucketize", "digitize", "searchsorted", "sort", "topk"]


class TopK(NamedTuple):
    """Selected elements and their indices."""

    values: Tensor
    indices: Tensor


@op(rule=rules.ORDERED)
def sort(x: TensorLike, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements sorted along an axis.

    Args:
        x: Input tensor.
        axis: Axis to sort along.
        descending: Whether to sort in descending order.
        stable: Whether equal elements keep their order.
    """


@op(rule=rules.ORDERED)
def argsort(
    x: TensorLike, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> Tensor:
    """Return the indices that sort the elements along an axis.

    Args:
        x: Input tensor.
        axis: Axis to sort along.
        descending: Whether to sort in descending order.
        stable: Whether equal elements keep their order.
    """


@op(rule=rules.ORDERED)
def topk(
    x: TensorLike, k: int, axis: int = -1, *, largest: bool = True, sorted: bool = True
) -> TopK:
    """Return the k largest elements along an axis and their indices.

    Args:
        x: Input tensor.
        k: Number of elements.
        axis: Axis to select along.
        largest: Whether to select the largest elements; else the smallest.
        sorted: Whether the result is sorted; False allows any order.
    """


@op(rule=rules.REAL)
def searchsorted(
    x1: TensorLike, x2: TensorLike, sorter: IndexLike | None = None, *, side: str = "left"
) -> Tensor:
    """Return the positions at which the elements of x2 keep the vector x1 sorted.

    Args:
        x1: Vector in ascending order, or in any order if `sorter` is given.
        x2: Values to look up.
        sorter: Indices that sort x1.
        side: "left" for the position before equal elements, "right" for the one after.
    """


@composite(rule=rules.REAL)
def digitize(x: TensorLike, bins: TensorLike, *, right: bool = False) -> Tensor:
    """Return the index i of the bin of each element: bins[i-1] <= x < bins[i].

    Args:
        x: Input tensor.
        bins: Vector of edges in ascending order.
        right: Whether the right edge is included instead: bins[i-1] < x <= bins[i].
    """
    return searchsorted(bins, x, side="left" if right else "right")


@composite(rule=rules.REAL)
def bucketize(x: TensorLike, boundaries: TensorLike, *, right: bool = False) -> Tensor:
    """Return the index i of the bucket of each element: boundaries[i-1] < x <= boundaries[i].

    Args:
        x: Input tensor.
        boundaries: Vector of edges in ascending order.
        right: Whether the left edge is included instead: boundaries[i-1] <= x < boundaries[i].
    """
    return searchsorted(boundaries, x, side="right" if right else "left")
