"""Selection of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import argwhere as argwhere
from numpy import nonzero as nonzero
from numpy import where as where

from ember_ml._core.errors import IndexOutOfRangeError, ShapeError
from ember_ml.backend.numpy import indexing
from ember_ml.backend.numpy.indexing import getitem as getitem


def setitem(x: np.ndarray, value: np.ndarray, key: Any) -> np.ndarray:
    return indexing.setitem(x, key, value)


def additem(x: np.ndarray, value: np.ndarray, key: Any) -> np.ndarray:
    return indexing.additem(x, key, value)


def take(x: np.ndarray, indices: np.ndarray, axis: int | None = None) -> np.ndarray:
    return np.take(x, indices.astype(np.intp, copy=False), axis)


def take_along_axis(x: np.ndarray, indices: np.ndarray, axis: int = -1) -> np.ndarray:
    _check_rank("take_along_axis", x, indices)
    return np.take_along_axis(x, indices.astype(np.intp, copy=False), axis)


def put_along_axis(
    x: np.ndarray, indices: np.ndarray, values: np.ndarray, axis: int = -1
) -> np.ndarray:
    _check_rank("put_along_axis", x, indices)
    if values.ndim > x.ndim:
        raise ValueError("the values have more axes than x")
    out = np.array(x)
    np.put_along_axis(out, indices.astype(np.intp, copy=False), values, axis)
    return out


def _check_rank(op: str, x: np.ndarray, indices: np.ndarray) -> None:
    if x.ndim != indices.ndim or x.ndim == 0:
        raise ShapeError(
            f"{op}: x {x.shape} and indices {indices.shape} must have the same number of axes, "
            "at least 1"
        )


def unravel_index(indices: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    size = math.prod(shape)
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        raise IndexOutOfRangeError(
            f"unravel_index: an index is out of range for the shape {tuple(shape)}"
        )
    return np.unravel_index(indices.astype(np.int64), tuple(shape))


def ravel_multi_index(multi_index: Sequence[np.ndarray], shape: Sequence[int]) -> np.ndarray:
    out = np.int64(0)
    for part, length in zip(multi_index, shape, strict=True):
        if part.size and not (part.min() >= 0 and part.max() < length):
            raise IndexOutOfRangeError(
                f"ravel_multi_index: an index is out of range for the shape {tuple(shape)}"
            )
        out = out * length + part.astype(np.int64)
    return out
