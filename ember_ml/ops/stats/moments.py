"""Moments of a sample, and the normal density."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml._core.types import Axis
from ember_ml.ops.dtypes import floating

__all__ = ["corrcoef", "cov", "gaussian", "kurtosis", "skew", "standardize"]


@composite(rule=rules.REAL_FLOAT)
def gaussian(x: TensorLike, mean: TensorLike = 0.0, std: TensorLike = 1.0) -> Tensor:
    """Return the normal density: exp(-((x - mean) / std)^2 / 2) / (std sqrt(2 pi)).

    Args:
        x: Input tensor.
        mean: Mean; broadcasts with x.
        std: Standard deviation; broadcasts with x.
    """
    z = ops.divide(ops.subtract(floating(x), mean), std)
    density = ops.divide(ops.exp(ops.multiply(ops.square(z), -0.5)), math.sqrt(2 * math.pi))
    return ops.divide(density, std)


def _rows(name: str, x: Tensor) -> Tensor:
    """Return the variables as rows, in floating point."""
    if x.ndim > 2:
        raise ShapeError(f"{name}: x has shape {x.shape}; expected a vector or a matrix")
    x = floating(x)
    return ops.reshape(x, (1, -1)) if x.ndim < 2 else x


@composite(rule=rules.FLOAT)
def cov(x: TensorLike, *, rowvar: bool = True, correction: float = 1.0) -> Tensor:
    """Return the covariance matrix of the variables; for a vector, its variance.

    Args:
        x: Matrix with one variable per row and one observation per column, or a vector.
        rowvar: Whether the variables are the rows; else they are the columns.
        correction: Subtracted from the number of observations; NaN if nothing is left.
    """
    rows = _rows("cov", x)
    rows = rows if rowvar or x.ndim < 2 else ops.swapaxes(rows, 0, 1)
    freedom = rows.shape[1] - correction
    centered = ops.subtract(rows, ops.mean(rows, 1, keepdims=True))
    product = ops.matmul(centered, ops.conj(ops.swapaxes(centered, 0, 1)))
    out = ops.multiply(product, 1 / freedom if freedom > 0 else math.nan)
    return out if x.ndim == 2 else ops.reshape(out, ())


@composite(rule=rules.FLOAT)
def corrcoef(x: TensorLike, *, rowvar: bool = True) -> Tensor:
    """Return the correlation matrix of the variables; NaN for a constant variable.

    Args:
        x: Matrix with one variable per row and one observation per column, or a vector.
        rowvar: Whether the variables are the rows; else they are the columns.
    """
    rows = _rows("corrcoef", x)
    rows = rows if rowvar or x.ndim < 2 else ops.swapaxes(rows, 0, 1)
    unit = standardize(rows, 1)
    product = ops.matmul(unit, ops.conj(ops.swapaxes(unit, 0, 1)))
    out = ops.divide(product, rows.shape[1])
    return out if x.ndim == 2 else ops.reshape(out, ())


@composite(rule=rules.FLOAT)
def standardize(x: TensorLike, axis: Axis = None, *, correction: float = 0.0) -> Tensor:
    """Return the z-scores (x - mean(x)) / std(x) along axes; NaN where std(x) is 0.

    Args:
        x: Input tensor.
        axis: Axis or axes of the statistics. Default: all axes.
        correction: Subtracted from the number of elements in the variance.
    """
    offset = ops.subtract(x, ops.mean(x, axis, keepdims=True))
    scale = ops.std(x, axis, correction=correction, keepdims=True)
    return ops.divide(offset, ops.where(ops.equal(scale, 0), ops.nan, scale))


@composite(rule=rules.REAL_FLOAT)
def skew(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return the skewness along axes: the third moment of the z-scores; NaN for a constant.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """
    z = standardize(x, axis)
    return ops.mean(ops.multiply(ops.square(z), z), axis, keepdims=keepdims)


@composite(rule=rules.REAL_FLOAT)
def kurtosis(
    x: TensorLike, axis: Axis = None, *, excess: bool = True, keepdims: bool = False
) -> Tensor:
    """Return the kurtosis along axes: the fourth moment of the z-scores.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        excess: Whether to subtract 3, the kurtosis of the normal distribution.
        keepdims: Whether to keep the reduced axes with length 1.
    """
    out = ops.mean(ops.square(ops.square(standardize(x, axis))), axis, keepdims=keepdims)
    return ops.subtract(out, 3) if excess else out
