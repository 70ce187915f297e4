"""Folding axes: sums, extremes, moments, tests."""

from __future__ import annotations

from typing import TypeAlias

from ember_ml._core import rules
from ember_ml._core.dispatch import composite, reduction
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike
from ember_ml.ops._roots import root

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

Axes: TypeAlias = "int | tuple[int, ...] | None"
"""The axes to fold: one, several, or all (None)."""


@reduction
def sum(
    x: TensorLike, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """The sum along the axes; 0 of nothing.

    Integers and bools are summed in 64 bits, half precision in float32 (and rounded once).
    `dtype` is what x is cast to first.
    """


@reduction
def prod(
    x: TensorLike, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """The product along the axes; 1 of nothing. Dtypes as in `sum`."""


@reduction(rule=rules.FLOAT)
def mean(x: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The arithmetic mean along the axes; NaN of nothing."""


@reduction(rule=rules.FLOAT)
def var(
    x: TensorLike, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """sum(|x - mean(x)|^2) / (n - correction) along the axes; NaN unless n > correction."""


@composite(rule=rules.FLOAT)
def std(
    x: TensorLike, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The square root of `var`; the gradient of constant elements is zero."""
    return root(var(x, axis, correction=correction, keepdims=keepdims))


@reduction(rule=rules.ORDERED)
def max(x: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The greatest element along the axes; NaN where there is a NaN, an error of nothing."""


@reduction(rule=rules.ORDERED)
def min(x: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The least element along the axes; NaN where there is a NaN, an error of nothing."""


@reduction
def any(x: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Whether an element along the axes is not zero; False of nothing."""


@reduction
def all(x: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Whether no element along the axes is zero; True of nothing."""


@reduction
def count_nonzero(x: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """How many elements along the axes are not zero."""


@reduction(rule=rules.FLOAT)
def logsumexp(x: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) along the axes, without overflow; -inf of nothing."""


@reduction(rule=rules.ORDERED)
def argmax(x: TensorLike, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first greatest element (or NaN) along the axis, or in the flat tensor."""


@reduction(rule=rules.ORDERED)
def argmin(x: TensorLike, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first least element (or NaN) along the axis, or in the flat tensor."""


amax = reduce_max = max
amin = reduce_min = min
reduce_sum = sum
reduce_prod = prod
reduce_mean = mean
reduce_var = var
reduce_std = std
reduce_any = any
reduce_all = all
