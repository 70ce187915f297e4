"""Cumulative operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.numpy import cast

_HALF = np.dtype(np.float16)


def _accumulate(ufunc: Any, x: np.ndarray, axis: Any, dtype: np.dtype | None = None) -> np.ndarray:
    """Accumulate a ufunc along the axis, or over the flat array."""
    if axis is None:
        x, axis = np.asarray(x).reshape(-1), 0
    if x.ndim == 0:
        raise IndexError("a 0-d array has no axes")
    return ufunc.accumulate(x, axis, dtype)


def _widened(ufunc: Any, x: np.ndarray, axis: Any, dtype: np.dtype) -> np.ndarray:
    """Accumulate; NumPy widens integers, half precision is computed in float32."""
    if dtype is not None and x.dtype != dtype:
        x = cast(x, dtype)
    if x.dtype == _HALF:
        return cast(_accumulate(ufunc, x, axis, np.float32), _HALF)
    return _accumulate(ufunc, x, axis, dtype)


def cumsum(x: np.ndarray, axis: int | None = None, *, dtype: np.dtype | None = None) -> np.ndarray:
    return _widened(np.add, x, axis, dtype)


def cumprod(x: np.ndarray, axis: int | None = None, *, dtype: np.dtype | None = None) -> np.ndarray:
    return _widened(np.multiply, x, axis, dtype)


def cummax(x: np.ndarray, axis: int | None = None) -> np.ndarray:
    return _accumulate(np.maximum, x, axis)


def cummin(x: np.ndarray, axis: int | None = None) -> np.ndarray:
    return _accumulate(np.minimum, x, axis)


def logcumsumexp(x: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Return the cumulative log-sum-exp."""
    with np.errstate(invalid="ignore"):
        if x.dtype == _HALF:
            return cast(_accumulate(np.logaddexp, x, axis, np.float32), _HALF)
        return _accumulate(np.logaddexp, x, axis)
