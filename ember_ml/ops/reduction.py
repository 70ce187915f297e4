"""Reductions over axes: sums, extremes, moments, predicates."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import composite, reduction
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike
from ember_ml._core.types import Axis
from ember_ml.ops._composite import root

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_var",
    "std",
    "sum",
    "var",
]


@reduction
def sum(
    x: TensorLike, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """Return the sum along axes; 0 for an empty axis.

    Integers and bools are summed in 64 bits, half precision in float32 and rounded once.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        dtype: Data type to cast x to first. Default: as above.
        keepdims: Whether to keep the reduced axes with length 1.
    """


@reduction
def prod(
    x: TensorLike, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """Return the product along axes; 1 for an empty axis.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        dtype: Data type to cast x to first. Default: see `sum`.
        keepdims: Whether to keep the reduced axes with length 1.
    """


@reduction(rule=rules.FLOAT)
def mean(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return the mean along axes; NaN for an empty axis.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """


@reduction(rule=rules.FLOAT)
def var(
    x: TensorLike, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the variance sum(|x - mean(x)|^2) / (n - correction); NaN unless n > correction.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        correction: Subtracted from the number of elements in the denominator; 1 for the unbiased
            estimate.
        keepdims: Whether to keep the reduced axes with length 1.
    """


@composite(rule=rules.FLOAT)
def std(
    x: TensorLike, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the standard deviation along axes; its gradient is zero where all elements are equal.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        correction: Subtracted from the number of elements in the denominator; 1 for the unbiased
            estimate.
        keepdims: Whether to keep the reduced axes with length 1.
    """
    return root(var(x, axis, correction=correction, keepdims=keepdims))


@reduction(rule=rules.ORDERED)
def max(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return the maximum along axes; NaN if any element is NaN. An empty axis raises an error.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """


@reduction(rule=rules.ORDERED)
def min(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return the minimum along axes; NaN if any element is NaN. An empty axis raises an error.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """


@reduction
def any(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return whether any element along axes is nonzero; False for an empty axis.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """


@reduction
def all(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return whether all elements along axes are nonzero; True for an empty axis.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """


@reduction
def count_nonzero(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return the number of nonzero elements along axes.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """


@reduction(rule=rules.FLOAT)
def logsumexp(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return log(sum(exp(x))) along axes without overflow; -inf for an empty axis.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """


@reduction(rule=rules.ORDERED)
def argmax(x: TensorLike, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the first maximum, or of the first NaN, along an axis.

    Args:
        x: Input tensor.
        axis: Axis to reduce. Default: the flattened tensor.
        keepdims: Whether to keep the reduced axes with length 1.
    """


@reduction(rule=rules.ORDERED)
def argmin(x: TensorLike, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the first minimum, or of the first NaN, along an axis.

    Args:
        x: Input tensor.
        axis: Axis to reduce. Default: the flattened tensor.
        keepdims: Whether to keep the reduced axes with length 1.
    """


amax = reduce_max = max
amin = reduce_min = min
reduce_sum = sum
reduce_prod = prod
reduce_mean = mean
reduce_var = var
reduce_std = std
reduce_any = any
reduce_all = all
