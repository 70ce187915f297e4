"""Order: sorting, the greatest few, places in a sorted vector. NaN is above all numbers."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, composite, op
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = ["TopK", "argsort", "bucketize", "digitize", "searchsorted", "sort", "topk"]


class TopK(NamedTuple):
    """The chosen elements and where they were."""

    values: Tensor
    indices: Tensor


@op(rule=rules.ORDERED)
def sort(x: TensorLike, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements along the axis in order."""


@op(rule=rules.ORDERED)
def argsort(
    x: TensorLike, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> Tensor:
    """The indices that put the elements along the axis in order; `stable` keeps that of equals."""


@op(rule=rules.ORDERED)
def topk(
    x: TensorLike, k: int, axis: int = -1, *, largest: bool = True, sorted: bool = True
) -> TopK:
    """The k greatest elements along the axis (the least, unless `largest`), and their indices.

    Args:
        x: the tensor.
        k: how many.
        axis: the axis.
        largest: False for the least elements.
        sorted: False allows any order among the chosen.
    """


@op(rule=rules.REAL)
def searchsorted(
    x1: TensorLike, x2: TensorLike, sorter: IndexLike | None = None, *, side: str = "left"
) -> Tensor:
    """Where the elements of x2 belong in the vector x1.

    Args:
        x1: a vector in ascending order, or in any order that `sorter` mends.
        x2: what to look for.
        sorter: the indices that sort x1.
        side: "left" for the place before equal elements, "right" for the one after.
    """


@composite(rule=rules.REAL)
def digitize(x: TensorLike, bins: TensorLike, *, right: bool = False) -> Tensor:
    """The i of bins[i-1] <= x < bins[i], or of bins[i-1] < x <= bins[i] if `right`."""
    return searchsorted(bins, x, side="left" if right else "right")


@composite(rule=rules.REAL)
def bucketize(x: TensorLike, boundaries: TensorLike, *, right: bool = False) -> Tensor:
    """As `digitize` with `right` turned about: bins are closed above unless `right`."""
    return searchsorted(boundaries, x, side="right" if right else "left")
