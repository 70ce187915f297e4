"""Adapters for LAPACK, which needs float32 matrices and may crash on non-finite values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.backend import matrices
from ember_ml.backend.matrices import square as square

_HALVES = (mx.float16, mx.bfloat16)


def _wide(value: mx.array) -> mx.array:
    is_half = isinstance(value, mx.array) and value.dtype in _HALVES
    return value.astype(mx.float32) if is_half else value


def _narrow(value: mx.array, dtype: mx.Dtype) -> mx.array:
    return value.astype(dtype) if value.dtype == mx.float32 else value


widened = matrices.widened(_HALVES, _wide, _narrow)


def where_matrix(condition: Any, x: mx.array, y: mx.array) -> mx.array:
    """Apply `where` with one condition per matrix (or per vector of eigenvalues)."""
    ndim = max(part.ndim for part in (x, y) if isinstance(part, mx.array))
    return mx.where(condition.reshape(condition.shape + (1,) * (ndim - condition.ndim)), x, y)


def finite(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns NaN for non-finite matrices, which may crash LAPACK."""

    @functools.wraps(function)
    def adapted(x: mx.array, *args: Any, **kwargs: Any) -> mx.array | tuple[mx.array, ...]:
        if x.size == 0:
            return function(x, *args, **kwargs)
        usable = mx.isfinite(x).all(axis=(-2, -1))
        out = function(where_matrix(usable, x, mx.zeros_like(x)), *args, **kwargs)
        if isinstance(out, tuple):
            return tuple([where_matrix(usable, part, mx.nan) for part in out])
        return where_matrix(usable, out, mx.nan)

    return adapted
