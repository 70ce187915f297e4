"""Quantiles of the elements along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.dtype import DEFAULT_FLOAT, DEFAULT_INT, float64
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml._core.types import Axis
from ember_ml.backend.axes import folded_shape, listed
from ember_ml.ops._arguments import normalize_axes
from ember_ml.ops.dtypes import floating

__all__ = ["median", "percentile", "quantile"]

Shares: TypeAlias = "Tensor | list[float]"
"""Vector of fractions: Python numbers are located exactly, a tensor is traced."""

METHODS: dict[str, Callable[[Any, Any, Callable[[Any], Any]], Any]] = {
    "linear": lambda position, low, nearest: position - low,
    "lower": lambda position, low, nearest: low - low,
    "higher": lambda position, low, nearest: low - low + 1.0,
    "midpoint": lambda position, low, nearest: low - low + 0.5,
    "nearest": lambda position, low, nearest: nearest(position) - low,
}
"""Weight of the element above a position; `low` is the index below it."""


def _shares(q: Any) -> tuple[Shares, tuple[int, ...]]:
    """Return the quantiles as a vector, and their original shape."""
    if isinstance(q, EmberTensor):
        return ops.reshape(q, (-1,)), q.shape
    plain = q.tolist() if hasattr(q, "tolist") else q
    return (list(plain), (len(plain),)) if isinstance(plain, (list, tuple)) else ([plain], ())


def _merged(name: str, x: Tensor, axis: Axis) -> Tensor:
    """Return the tensor with the reduced axes merged into one, at the end."""
    axes = normalize_axes(name, range(x.ndim) if axis is None else listed(axis), x.ndim)
    others = [one for one in range(x.ndim) if one not in axes]
    length = math.prod([x.shape[one] for one in axes])
    moved = ops.permute_dims(x, (*others, *axes))
    return ops.reshape(moved, (*(x.shape[one] for one in others), length))


def _fixed(ordered: Tensor, shares: list[float], method: str) -> Tensor:
    """Return the elements at the given fractions, stacked along a new first axis."""

    def pick(share: float) -> Tensor:
        position = share * (ordered.shape[-1] - 1)
        below, above = math.floor(position), math.ceil(position)
        weight = float(METHODS[method](position, below, round))
        if weight in (0.0, 1.0) or below == above:
            return ordered[..., above if weight == 1.0 else below]
        low, high = ordered[..., below], ordered[..., above]
        mixed = ops.add(ops.multiply(low, 1 - weight), ops.multiply(high, weight))
        return ops.where(ops.equal(low, high), low, mixed)

    return ops.stack([pick(share) for share in shares], axis=0)


def _traced(ordered: Tensor, shares: Tensor, method: str) -> Tensor:
    """Return the elements at the fractions in a tensor, stacked along a new first axis."""
    wide = float64 if ordered.dtype is float64 else DEFAULT_FLOAT
    length = float(ordered.shape[-1] - 1)
    shares = ops.astype(shares, wide)
    valid = ops.logical_and(ops.greater_equal(shares, 0.0), ops.less_equal(shares, 1.0))
    position = ops.multiply(ops.where(valid, shares, 0.0), length)
    below, above = ops.floor(position), ops.ceil(position)
    weight = ops.astype(METHODS[method](position, below, ops.round), ordered.dtype)
    low = ops.take(ordered, ops.astype(below, DEFAULT_INT), axis=-1)
    high = ops.take(ordered, ops.astype(above, DEFAULT_INT), axis=-1)
    mixed = ops.add(ops.multiply(low, ops.subtract(1, weight)), ops.multiply(high, weight))
    mixed = ops.where(ops.equal(weight, 1), high, mixed)
    mixed = ops.where(ops.logical_or(ops.equal(weight, 0), ops.equal(low, high)), low, mixed)
    return ops.moveaxis(ops.where(valid, mixed, ops.nan), -1, 0)


def _quantile(
    name: str, x: Tensor, q: tuple[Shares, tuple[int, ...]], axis: Axis, keepdims: bool, method: str
) -> Tensor:
    shares, shape = q
    if method not in METHODS:
        raise ArgumentError(f"{name}: method must be one of {', '.join(METHODS)}; got {method!r}")
    if isinstance(shares, list) and not all(0 <= share <= 1 for share in shares):
        raise ArgumentError(f"{name}: q must be between 0 and 1 (100 %); got fractions {shares}")
    values = _merged(name, floating(x), axis)
    shape += folded_shape(x.shape, axis, keepdims)
    if 0 in (values.shape[-1], *shape):
        return ops.add(ops.broadcast_to(ops.sum(values), shape), ops.nan)
    ordered = ops.sort(values, axis=-1)
    if isinstance(shares, list):
        values = _fixed(ordered, shares, method)
    else:
        values = _traced(ordered, shares, method)
    return ops.reshape(ops.where(ops.isnan(ordered[..., -1]), ops.nan, values), shape)


@composite(rule=rules.REAL_FLOAT)
def quantile(
    x: TensorLike,
    q: float | Sequence[float] | Tensor,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor:
    """Return the q-th quantile of the elements along axes; NaN if any element is NaN.

    Args:
        x: Input tensor.
        q: Fraction in [0, 1], or a vector of fractions, which becomes the first axis of the result.
            Numbers out of range are an error; in a tensor, whose values are not read, the result
            is NaN.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
        method: Interpolation between two elements: "linear", "lower", "higher", "midpoint" or
            "nearest".
    """
    return _quantile("quantile", x, _shares(q), axis, keepdims, method)


@composite(rule=rules.REAL_FLOAT)
def percentile(
    x: TensorLike,
    q: float | Sequence[float] | Tensor,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor:
    """Return the q-th percentile of the elements along axes; NaN if any element is NaN.

    Args:
        x: Input tensor.
        q: Percentage in [0, 100], or a vector of them, which becomes the first axis of the result.
            Numbers out of range are an error; in a tensor, whose values are not read, the result
            is NaN.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
        method: Interpolation between two elements: "linear", "lower", "higher", "midpoint" or
            "nearest".
    """
    percents, shape = _shares(q)
    shares: Shares = (
        ops.divide(percents, 100)
        if isinstance(percents, EmberTensor)
        else [percent / 100 for percent in percents]
    )
    return _quantile("percentile", x, (shares, shape), axis, keepdims, method)


@composite(rule=rules.REAL_FLOAT)
def median(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Return the median along axes; NaN if any element is NaN or if there are none.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
    """
    return quantile(x, 0.5, axis, keepdims=keepdims)
