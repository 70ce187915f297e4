"""Reductions. MLX neither widens integers nor protects half precision from overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml._core.types import Axis
from ember_ml.backend.axes import count, folded_shape, normalize
from ember_ml.backend.interface import Variants
from ember_ml.backend.mlx import cast

_WIDE = {
    mx.bool_: mx.int64,
    mx.int8: mx.int64,
    mx.int16: mx.int64,
    mx.int32: mx.int64,
    mx.uint8: mx.uint64,
    mx.uint16: mx.uint64,
    mx.uint32: mx.uint64,
}
_HALVES = (mx.float16, mx.bfloat16)


def _nothing(value: complex, x: mx.array, axis: Any, keepdims: bool, dtype: mx.Dtype) -> mx.array:
    """Return the reduction of an empty array; MLX leaves parts of it uninitialized."""
    return mx.full(folded_shape(x.shape, axis, keepdims), mx.array(value, dtype))


def _accumulate(
    native: Callable[..., mx.array],
    identity: int,
    x: mx.array,
    axis: Any,
    dtype: mx.Dtype,
    keepdims: bool,
) -> mx.array:
    """Reduce in the dtype of the sum, half precision in float32."""
    target = _WIDE.get(x.dtype, x.dtype) if dtype is None else dtype
    if x.size == 0:
        return _nothing(identity, x, axis, keepdims, target)
    x = cast(x, mx.float32 if target in _HALVES else target)
    return native(x, axis, keepdims).astype(target)


def sum(
    x: mx.array, axis: Axis | None = None, *, dtype: mx.Dtype | None = None, keepdims: bool = False
) -> mx.array:
    return _accumulate(mx.sum, 0, x, axis, dtype, keepdims)


def _sum_wide(
    x: mx.array, axis: Any = None, *, dtype: mx.Dtype | None = None, keepdims: bool = False
) -> mx.array:
    """Return the sum for dtypes that need no widening."""
    if dtype is None and x.size:
        return mx.sum(x, axis, keepdims)
    return sum(x, axis, dtype=dtype, keepdims=keepdims)


def prod(
    x: mx.array, axis: Axis | None = None, *, dtype: mx.Dtype | None = None, keepdims: bool = False
) -> mx.array:
    return _accumulate(mx.prod, 1, x, axis, dtype, keepdims)


def mean(x: mx.array, axis: Axis | None = None, *, keepdims: bool = False) -> mx.array:
    if x.size == 0:
        nan = complex(mx.nan, mx.nan) if x.dtype == mx.complex64 else mx.nan
        return _nothing(nan, x, axis, keepdims, x.dtype)
    if x.dtype in _HALVES:
        return mx.mean(x.astype(mx.float32), axis, keepdims).astype(x.dtype)
    return mx.mean(x, axis, keepdims)


def var(
    x: mx.array, axis: Axis | None = None, *, correction: float = 0.0, keepdims: bool = False
) -> mx.array:
    """Return the variance; NaN if there are too few elements."""
    dtype = mx.float32 if x.dtype == mx.complex64 else x.dtype
    n = count(x.shape, axis)
    if n <= correction or x.size == 0:
        return _nothing(mx.nan, x, axis, keepdims, dtype)
    out = mx.var(x.astype(mx.float32) if x.dtype in _HALVES else x, axis, keepdims)
    return (out * (n / (n - correction))).astype(dtype)


def max(x: mx.array, axis: Axis | None = None, *, keepdims: bool = False) -> mx.array:
    return mx.max(x, axis, keepdims)


def min(x: mx.array, axis: Axis | None = None, *, keepdims: bool = False) -> mx.array:
    return mx.min(x, axis, keepdims)


def any(x: mx.array, axis: Axis | None = None, *, keepdims: bool = False) -> mx.array:
    if x.size == 0:
        return _nothing(False, x, axis, keepdims, mx.bool_)
    return mx.any(x, axis, keepdims)


def all(x: mx.array, axis: Axis | None = None, *, keepdims: bool = False) -> mx.array:
    if x.size == 0:
        return _nothing(True, x, axis, keepdims, mx.bool_)
    return mx.all(x, axis, keepdims)


def count_nonzero(x: mx.array, axis: Axis | None = None, *, keepdims: bool = False) -> mx.array:
    return sum(x != 0, axis, keepdims=keepdims)


def _complex_logsumexp(x: mx.array, axis: Any, keepdims: bool) -> mx.array:
    """Shift by the largest finite real part; MLX's own is off by multiples of 2 pi i."""
    peak = mx.max(mx.real(x), axis, keepdims=True)
    peak = mx.stop_gradient(mx.where(mx.isfinite(peak), peak, 0.0))
    out = mx.log(mx.sum(mx.exp(x - peak), axis, keepdims=True)) + peak
    return out.reshape(folded_shape(x.shape, axis, keepdims))


def logsumexp(x: mx.array, axis: Axis | None = None, *, keepdims: bool = False) -> mx.array:
    if x.size == 0:
        return _nothing(-mx.inf, x, axis, keepdims, x.dtype)
    if x.dtype == mx.complex64:
        return _complex_logsumexp(x, axis, keepdims)
    return mx.logsumexp(x, axis, keepdims) if normalize(axis, x.ndim) else x


def _index(native: Callable[..., mx.array], x: mx.array, axis: Any, keepdims: bool) -> mx.array:
    """Return an index, also if other axes are empty."""
    if x.size == 0 and count(x.shape, axis) > 0:
        return _nothing(0, x, axis, keepdims, mx.int64)
    if x.ndim == 0 and axis is None:
        return mx.zeros((), mx.int64)  # MLX fails with keepdims
    return native(x, axis, keepdims).astype(mx.int64)


def argmax(x: mx.array, axis: int | None = None, *, keepdims: bool = False) -> mx.array:
    """Return the index of the greatest element."""
    return _index(mx.argmax, x, axis, keepdims)


def argmin(x: mx.array, axis: int | None = None, *, keepdims: bool = False) -> mx.array:
    """Return the index of the least element."""
    return _index(mx.argmin, x, axis, keepdims)


VARIANTS = Variants(
    by_dtype={"sum": dict.fromkeys(("int64", "uint64", "float32", "complex64"), _sum_wide)}
)
