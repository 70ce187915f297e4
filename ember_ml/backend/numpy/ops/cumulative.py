"""Along an axis, element after element."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.numpy import cast

_HALF = np.dtype(np.float16)


def _accumulate(ufunc: Any, x: Any, axis: Any, dtype: Any = None) -> Any:
    """A ufunc's running values along the axis, or of the flat array."""
    if axis is None:
        x, axis = np.asarray(x).reshape(-1), 0
    if x.ndim == 0:
        raise IndexError("a 0-d array has no axes")
    return ufunc.accumulate(x, axis, dtype)


def _widened(ufunc: Any, x: Any, axis: Any, dtype: Any) -> Any:
    """Integers are widened by NumPy, half precision goes through float32."""
    if dtype is not None and x.dtype != dtype:
        x = cast(x, dtype)
    if x.dtype == _HALF:
        return cast(_accumulate(ufunc, x, axis, np.float32), _HALF)
    return _accumulate(ufunc, x, axis, dtype)


def cumsum(x: Any, axis: Any = None, *, dtype: Any = None) -> Any:
    """Running sums."""
    return _widened(np.add, x, axis, dtype)


def cumprod(x: Any, axis: Any = None, *, dtype: Any = None) -> Any:
    """Running products."""
    return _widened(np.multiply, x, axis, dtype)


def cummax(x: Any, axis: Any = None) -> Any:
    """Running maxima."""
    return _accumulate(np.maximum, x, axis)


def cummin(x: Any, axis: Any = None) -> Any:
    """Running minima."""
    return _accumulate(np.minimum, x, axis)


def logcumsumexp(x: Any, axis: Any = None) -> Any:
    """Running log-sums of exponentials."""
    with np.errstate(invalid="ignore"):
        if x.dtype == _HALF:
            return cast(_accumulate(np.logaddexp, x, axis, np.float32), _HALF)
        return _accumulate(np.logaddexp, x, axis)
