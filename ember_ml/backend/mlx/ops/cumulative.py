"""Along an axis, element after element. MLX neither widens integers nor half precision."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx import cast
from ember_ml.backend.mlx.ops.reduction import _HALVES, _WIDE


def _widened(native: Any, x: Any, axis: Any, dtype: Any) -> Any:
    target = _WIDE.get(x.dtype, x.dtype) if dtype is None else dtype
    x = cast(x, mx.float32 if target in _HALVES else target)
    return native(x, axis=axis).astype(target)


def cumsum(x: Any, axis: Any = None, *, dtype: Any = None) -> Any:
    """Running sums."""
    return _widened(mx.cumsum, x, axis, dtype)


def cumprod(x: Any, axis: Any = None, *, dtype: Any = None) -> Any:
    """Running products."""
    return _widened(mx.cumprod, x, axis, dtype)


def _in_float32(native: Any, x: Any, axis: Any) -> Any:
    """Half precision in float32: MLX loses NaNs in its own."""
    if x.dtype in _HALVES:
        return native(x.astype(mx.float32), axis=axis).astype(x.dtype)
    return native(x, axis=axis)


def cummax(x: Any, axis: Any = None) -> Any:
    """Running maxima."""
    return _in_float32(mx.cummax, x, axis)


def cummin(x: Any, axis: Any = None) -> Any:
    """Running minima."""
    return _in_float32(mx.cummin, x, axis)


def logcumsumexp(x: Any, axis: Any = None) -> Any:
    """Running log-sums of exponentials."""
    return _in_float32(mx.logcumsumexp, x, axis)
