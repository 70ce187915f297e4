"""Cumulative operations. MLX widens neither integers nor half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx import cast
from ember_ml.backend.mlx.ops.reduction import _HALVES, _WIDE


def _widened(native: Callable[..., mx.array], x: mx.array, axis: Any, dtype: mx.Dtype) -> mx.array:
    target = _WIDE.get(x.dtype, x.dtype) if dtype is None else dtype
    x = cast(x, mx.float32 if target in _HALVES else target)
    return native(x, axis=axis).astype(target)


def cumsum(x: mx.array, axis: int | None = None, *, dtype: mx.Dtype | None = None) -> mx.array:
    return _widened(mx.cumsum, x, axis, dtype)


def _complex_cumprod(x: mx.array, axis: Any) -> mx.array:
    """Compute by doubling; MLX's own gradient is that of the conjugate."""
    x = mx.moveaxis(x.reshape(-1) if axis is None else x, 0 if axis is None else axis, 0)
    step = 1
    while step < x.shape[0]:
        x = mx.concatenate([x[:step], x[step:] * x[:-step]])
        step *= 2
    return mx.moveaxis(x, 0, 0 if axis is None else axis)


def cumprod(x: mx.array, axis: int | None = None, *, dtype: mx.Dtype | None = None) -> mx.array:
    if x.dtype == mx.complex64 and (dtype is None or dtype == mx.complex64):
        return _complex_cumprod(x, axis)
    return _widened(mx.cumprod, x, axis, dtype)


def _in_float32(native: Callable[..., mx.array], x: mx.array, axis: Any) -> mx.array:
    """Compute half precision in float32; MLX drops NaNs otherwise."""
    if x.dtype in _HALVES:
        return native(x.astype(mx.float32), axis=axis).astype(x.dtype)
    return native(x, axis=axis)


def cummax(x: mx.array, axis: int | None = None) -> mx.array:
    return _in_float32(mx.cummax, x, axis)


def cummin(x: mx.array, axis: int | None = None) -> mx.array:
    return _in_float32(mx.cummin, x, axis)


def logcumsumexp(x: mx.array, axis: int | None = None) -> mx.array:
    """Return the cumulative log-sum-exp."""
    return _in_float32(mx.logcumsumexp, x, axis)
