"""Sorting."""

from __future__ import annotations

from typing import Any

import numpy as np


def sort(
    x: np.ndarray, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> np.ndarray:
    if axis is None:
        raise TypeError("axis must be an integer")
    out = np.sort(x, axis, stable=stable)
    return np.flip(out, axis) if descending else out


def argsort(
    x: np.ndarray, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> np.ndarray:
    """Return the sorting indices; a descending sort runs on the reversed axis to stay stable."""
    if x.ndim == 0:
        raise IndexError("a 0-d array has no axes")
    if axis is None:
        raise TypeError("axis must be an integer")
    if not descending:
        return np.argsort(x, axis, stable=stable)
    backwards = np.argsort(np.flip(x, axis), axis, stable=stable)
    return np.flip(x.shape[axis] - 1 - backwards, axis)


def topk(
    x: np.ndarray, k: int, axis: int = -1, *, largest: bool = True, sorted: bool = True
) -> Any:
    order = argsort(x, axis, descending=largest)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"k={k} is out of range for an axis of length {x.shape[axis]}")
    indices = np.take(order, np.arange(k), axis)
    return np.take_along_axis(x, indices, axis), indices


def searchsorted(
    x1: np.ndarray, x2: np.ndarray, sorter: np.ndarray | None = None, *, side: str = "left"
) -> np.ndarray:
    if x1.ndim != 1:
        raise ValueError(f"x1 must be a vector; its shape is {x1.shape}")
    order = None if sorter is None else sorter.astype(np.int64, copy=False)
    return np.searchsorted(x1, x2, side, order)
