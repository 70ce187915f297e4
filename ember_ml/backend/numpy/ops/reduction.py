"""Reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml._core.errors import ShapeError
from ember_ml._core.types import Axis
from ember_ml.backend.axes import count, folded_shape
from ember_ml.backend.numpy import cast

_HALF = np.dtype(np.float16)


def _axes(x: np.ndarray, axis: Any) -> np.ndarray:
    """Return the axes for NumPy; reject an axis of a 0-d array."""
    if axis is not None and x.ndim == 0 and axis not in ((), []):
        raise IndexError("a 0-d array has no axes")
    return tuple(axis) if isinstance(axis, list) else axis


def _accumulate(
    ufunc: Any, x: np.ndarray, axis: Any, dtype: np.dtype, keepdims: bool
) -> np.ndarray:
    """Reduce with a ufunc; NumPy widens integers, half precision is computed in float32."""
    if dtype is not None and x.dtype != dtype:
        x = cast(x, dtype)
    if x.dtype == _HALF:
        out = ufunc.reduce(x, _axes(x, axis), np.float32, None, keepdims)
        with np.errstate(over="ignore"):
            return out.astype(_HALF)
    return ufunc.reduce(x, _axes(x, axis), dtype, None, keepdims)


def sum(
    x: np.ndarray,
    axis: Axis | None = None,
    *,
    dtype: np.dtype | None = None,
    keepdims: bool = False,
) -> np.ndarray:
    return _accumulate(np.add, x, axis, dtype, keepdims)


def prod(
    x: np.ndarray,
    axis: Axis | None = None,
    *,
    dtype: np.dtype | None = None,
    keepdims: bool = False,
) -> np.ndarray:
    return _accumulate(np.multiply, x, axis, dtype, keepdims)


def mean(x: np.ndarray, axis: Axis | None = None, *, keepdims: bool = False) -> np.ndarray:
    """Return the mean, without NumPy's warning for empty arrays."""
    n = x.size if axis is None else count(x.shape, axis)
    if n == 0:
        nan = complex(np.nan, np.nan) if x.dtype.kind == "c" else np.nan
        return np.full(folded_shape(x.shape, axis, keepdims), nan, x.dtype)
    if x.dtype == _HALF:
        return (np.add.reduce(x, _axes(x, axis), np.float32, None, keepdims) / n).astype(_HALF)
    return np.add.reduce(x, _axes(x, axis), None, None, keepdims) / n


def var(
    x: np.ndarray, axis: Axis | None = None, *, correction: float = 0.0, keepdims: bool = False
) -> np.ndarray:
    """Return the variance; NaN if there are too few elements."""
    if count(x.shape, axis) <= correction:
        return np.full(folded_shape(x.shape, axis, keepdims), np.nan, x.real.dtype)
    return np.var(x, axis=_axes(x, axis), correction=correction, keepdims=keepdims)


def std(
    x: np.ndarray, axis: Axis | None = None, *, correction: float = 0.0, keepdims: bool = False
) -> np.ndarray:
    """Return the standard deviation."""
    return np.sqrt(var(x, axis, correction=correction, keepdims=keepdims))


def max(x: np.ndarray, axis: Axis | None = None, *, keepdims: bool = False) -> np.ndarray:
    return np.maximum.reduce(x, _axes(x, axis), None, None, keepdims)


def min(x: np.ndarray, axis: Axis | None = None, *, keepdims: bool = False) -> np.ndarray:
    return np.minimum.reduce(x, _axes(x, axis), None, None, keepdims)


def any(x: np.ndarray, axis: Axis | None = None, *, keepdims: bool = False) -> np.ndarray:
    return np.logical_or.reduce(x, _axes(x, axis), None, None, keepdims)


def all(x: np.ndarray, axis: Axis | None = None, *, keepdims: bool = False) -> np.ndarray:
    return np.logical_and.reduce(x, _axes(x, axis), None, None, keepdims)


def count_nonzero(x: np.ndarray, axis: Axis | None = None, *, keepdims: bool = False) -> np.ndarray:
    return np.add.reduce(np.not_equal(x, 0), _axes(x, axis), np.int64, None, keepdims)


def logsumexp(x: np.ndarray, axis: Axis | None = None, *, keepdims: bool = False) -> np.ndarray:
    """Shift by the largest finite real part."""
    wide = x.astype(np.float32) if x.dtype == _HALF else x
    peak = np.maximum.reduce(wide.real, _axes(x, axis), keepdims=True, initial=-np.inf)
    peak = np.where(np.isfinite(peak), peak, 0).astype(wide.real.dtype)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        total = np.add.reduce(np.exp(wide - peak), _axes(x, axis), keepdims=True)
        out = (np.log(total) + peak).astype(x.dtype)
    return out if keepdims else out.reshape(folded_shape(x.shape, axis, False))


def _check_nonempty(name: str, x: np.ndarray, axis: int | None) -> None:
    if x.size == 0 and count(x.shape, axis) == 0:
        raise ShapeError(f"{name}: no element to choose along axis={axis} of the shape {x.shape}")


def argmax(x: np.ndarray, axis: int | None = None, *, keepdims: bool = False) -> np.ndarray:
    """Return the index of the greatest element."""
    _check_nonempty("argmax", x, axis)
    return np.argmax(x, axis=_axes(x, axis), keepdims=keepdims)


def argmin(x: np.ndarray, axis: int | None = None, *, keepdims: bool = False) -> np.ndarray:
    """Return the index of the least element."""
    _check_nonempty("argmin", x, axis)
    return np.argmin(x, axis=_axes(x, axis), keepdims=keepdims)
