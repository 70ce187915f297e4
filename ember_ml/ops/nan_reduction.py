"""Reductions that ignore NaN."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.dtype import real_part
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike
from ember_ml._core.types import Axis
from ember_ml.ops._composite import root
from ember_ml.ops.dtypes import floating

__all__ = ["nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar"]


def _counts(missing: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    """Return the number of elements that are not NaN."""
    return ops.count_nonzero(ops.logical_not(missing), axis, keepdims=keepdims)


def _ratio(total: Tensor, count: Tensor) -> Tensor:
    """Return total / count in the dtype of the total; NaN where the count is 0."""
    divisor = ops.astype(ops.maximum(count, 1), real_part(total.dtype))
    return ops.where(ops.greater(count, 0), ops.divide(total, divisor), ops.nan)


@composite(rule=rules.NUMERIC)
def nansum(
    x: TensorLike, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """Return the sum along axes, with NaN counted as 0.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        dtype: Data type to compute in. Default: as in `sum`.
        keepdims: Whether to keep the reduced axes with length 1.
    """
    return ops.sum(ops.where(ops.isnan(x), 0, x), axis, dtype=dtype, keepdims=keepdims)


@composite(rule=rules.FLOAT)
def nanmean(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return the mean along axes without NaN elements; NaN where all are NaN.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """
    x = floating(x)
    count = _counts(ops.isnan(x), axis, keepdims)
    return _ratio(nansum(x, axis, keepdims=keepdims), count)


@composite(rule=rules.REAL_FLOAT)
def nanvar(
    x: TensorLike, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the variance along axes without NaN elements, as in `var`.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        correction: Subtracted from the number of elements in the denominator.
        keepdims: Whether to keep the reduced axes with length 1.
    """
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
    x: TensorLike, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the standard deviation along axes without NaN elements: the square root of `nanvar`.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        correction: Subtracted from the number of elements in the denominator.
        keepdims: Whether to keep the reduced axes with length 1.
    """
    return root(nanvar(x, axis, correction=correction, keepdims=keepdims))


@composite(rule=rules.ORDERED)
def nanmax(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return the maximum along axes without NaN elements; NaN where all are NaN.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """
    if not x.dtype.is_floating:
        return ops.max(x, axis, keepdims=keepdims)
    missing = ops.isnan(x)
    largest = ops.max(ops.where(missing, -ops.inf, x), axis, keepdims=keepdims)
    return ops.where(ops.all(missing, axis, keepdims=keepdims), ops.nan, largest)


@composite(rule=rules.ORDERED)
def nanmin(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return the minimum along axes without NaN elements; NaN where all are NaN.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """
    if not x.dtype.is_floating:
        return ops.min(x, axis, keepdims=keepdims)
    missing = ops.isnan(x)
    smallest = ops.min(ops.where(missing, ops.inf, x), axis, keepdims=keepdims)
    return ops.where(ops.all(missing, axis, keepdims=keepdims), ops.nan, smallest)
