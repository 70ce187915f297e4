"""Folding axes as if the NaNs were not there."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.dtype import real_part
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike
from ember_ml.ops._roots import root
from ember_ml.ops.dtypes import floating
from ember_ml.ops.reduction import Axes

__all__ = ["nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar"]


def _counts(missing: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    """How many elements are numbers."""
    return ops.count_nonzero(ops.logical_not(missing), axis, keepdims=keepdims)


def _ratio(total: Tensor, count: Tensor) -> Tensor:
    """The total over the count, in its own dtype; NaN where nothing was counted."""
    divisor = ops.astype(ops.maximum(count, 1), real_part(total.dtype))
    return ops.where(ops.greater(count, 0), ops.divide(total, divisor), ops.nan)


@composite(rule=rules.NUMERIC)
def nansum(
    x: TensorLike, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """The sum along the axes, NaNs counted as 0."""
    return ops.sum(ops.where(ops.isnan(x), 0, x), axis, dtype=dtype, keepdims=keepdims)


@composite(rule=rules.FLOAT)
def nanmean(x: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The mean along the axes of the elements that are numbers; NaN where none is."""
    x = floating(x)
    count = _counts(ops.isnan(x), axis, keepdims)
    return _ratio(nansum(x, axis, keepdims=keepdims), count)


@composite(rule=rules.REAL_FLOAT)
def nanvar(
    x: TensorLike, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance along the axes of the elements that are numbers; see `var`."""
    x = floating(x)
    missing = ops.isnan(x)
    offset = ops.where(missing, 0, ops.subtract(x, nanmean(x, axis, keepdims=True)))
    total = ops.sum(ops.square(offset), axis, keepdims=keepdims)
    count = ops.astype(_counts(missing, axis, keepdims), x.dtype)
    freedom = ops.subtract(count, correction)
    safe = ops.where(ops.greater(freedom, 0), freedom, 1)
    return ops.where(ops.greater(freedom, 0), ops.divide(total, safe), ops.nan)


@composite(rule=rules.REAL_FLOAT)
def nanstd(
    x: TensorLike, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The square root of `nanvar`."""
    return root(nanvar(x, axis, correction=correction, keepdims=keepdims))


@composite(rule=rules.ORDERED)
def nanmax(x: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The greatest number along the axes; NaN where none is."""
    if not x.dtype.is_floating:
        return ops.max(x, axis, keepdims=keepdims)
    missing = ops.isnan(x)
    found = ops.max(ops.where(missing, -ops.inf, x), axis, keepdims=keepdims)
    return ops.where(ops.all(missing, axis, keepdims=keepdims), ops.nan, found)


@composite(rule=rules.ORDERED)
def nanmin(x: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The least number along the axes; NaN where none is."""
    if not x.dtype.is_floating:
        return ops.min(x, axis, keepdims=keepdims)
    missing = ops.isnan(x)
    found = ops.min(ops.where(missing, ops.inf, x), axis, keepdims=keepdims)
    return ops.where(ops.all(missing, axis, keepdims=keepdims), ops.nan, found)
