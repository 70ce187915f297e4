"""Quantiles of the elements along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dispatch import composite
from ember_ml._core.dtype import DEFAULT_FLOAT, DEFAULT_INT, float64
from ember_ml._core.errors import ArgumentError
from ember_ml._core.indexing import normalize_axes
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.backend.axes import folded_shape
from ember_ml.ops.dtypes import floating
from ember_ml.ops.reduction import Axes

__all__ = ["median", "percentile", "quantile"]

Shares: TypeAlias = "Tensor | list[float]"
"""A vector of quantiles: plain numbers are placed exactly, a tensor is traced."""

METHODS: dict[str, Callable[[Any, Any, Callable[[Any], Any]], Any]] = {
    "linear": lambda position, low, nearest: position - low,
    "lower": lambda position, low, nearest: low - low,
    "higher": lambda position, low, nearest: low - low + 1.0,
    "midpoint": lambda position, low, nearest: low - low + 0.5,
    "nearest": lambda position, low, nearest: nearest(position) - low,
}
"""The weight of the element above a position, of which `low` is the index below."""


def _shares(q: Any) -> tuple[Shares, tuple[int, ...]]:
    """q as a vector, and the shape it had."""
    if isinstance(q, EmberTensor):
        return ops.reshape(q, (-1,)), q.shape
    plain = q.tolist() if hasattr(q, "tolist") else q
    return (list(plain), (len(plain),)) if isinstance(plain, (list, tuple)) else ([plain], ())


def _merged(name: str, x: Tensor, axis: Axes) -> Tensor:
    """x with the axes that are folded as one, at the end."""
    axes = normalize_axes(name, range(x.ndim) if axis is None else axis, x.ndim)
    kept = [one for one in range(x.ndim) if one not in axes]
    length = math.prod(x.shape[one] for one in axes)
    moved = ops.permute_dims(x, (*kept, *axes))
    return ops.reshape(moved, (*(x.shape[one] for one in kept), length))


def _places(
    shares: Shares, length: int, method: str, like: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The indices below and above each quantile, and the weight of the latter."""
    if isinstance(shares, EmberTensor):
        wide = float64 if like.dtype is float64 else DEFAULT_FLOAT
        position = ops.multiply(ops.clip(ops.astype(shares, wide), 0.0, 1.0), float(length - 1))
        low, high = ops.floor(position), ops.ceil(position)
        weight = METHODS[method](position, low, ops.round)
        return ops.cast(low, DEFAULT_INT), ops.cast(high, DEFAULT_INT), ops.cast(weight, like.dtype)
    positions = [share * (length - 1) for share in shares]
    weights = [METHODS[method](one, math.floor(one), round) for one in positions]
    place = {"backend": like.backend, "device": like.device}
    return (
        convert_to_tensor([math.floor(one) for one in positions], DEFAULT_INT, **place),
        convert_to_tensor([math.ceil(one) for one in positions], DEFAULT_INT, **place),
        convert_to_tensor(weights, like.dtype, **place),
    )


def _mix(low: Tensor, high: Tensor, weight: Tensor) -> Tensor:
    """(1 - weight) low + weight high, exact at both ends, whatever is infinite."""
    mixed = ops.add(ops.multiply(low, ops.subtract(1, weight)), ops.multiply(high, weight))
    ends = ops.where(ops.equal(weight, 1), high, mixed)
    return ops.where(ops.logical_or(ops.equal(weight, 0), ops.equal(low, high)), low, ends)


def _quantile(
    name: str, x: Tensor, q: tuple[Shares, tuple[int, ...]], axis: Axes, keepdims: bool, method: str
) -> Tensor:
    shares, shape = q
    if method not in METHODS:
        raise ArgumentError(f"{name}: method must be one of {', '.join(METHODS)}, not {method!r}")
    if isinstance(shares, list) and not all(0 <= share <= 1 for share in shares):
        raise ArgumentError(f"{name}: q is out of range in {shares}; a share is between 0 and 1")
    values = _merged(name, floating(x), axis)
    shape += folded_shape(x.shape, axis, keepdims)
    if values.shape[-1] == 0:
        return ops.full_like(ops.broadcast_to(ops.sum(values), shape), ops.nan)
    ordered = ops.sort(values, axis=-1)
    low, high, weight = _places(shares, values.shape[-1], method, values)
    found = _mix(ops.take(ordered, low, axis=-1), ops.take(ordered, high, axis=-1), weight)
    found = ops.where(ops.isnan(ordered[..., -1:]), ops.nan, found)
    return ops.reshape(ops.moveaxis(found, -1, 0), shape)


@composite(rule=rules.REAL_FLOAT)
def quantile(
    x: TensorLike,
    q: float | Sequence[float] | Tensor,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor:
    """The values below which a share q of the elements along the axes lies; NaN where there is a NaN.

    Args:
        x: the tensor.
        q: a share between 0 and 1, or a vector of them, which becomes the first axis of the result.
        axis: the axes to fold.
        keepdims: whether folded axes stay, with length 1.
        method: what to take between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
    """
    return _quantile("quantile", x, _shares(q), axis, keepdims, method)


@composite(rule=rules.REAL_FLOAT)
def percentile(
    x: TensorLike,
    q: float | Sequence[float] | Tensor,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor:
    """`quantile` with shares in percent."""
    percents, shape = _shares(q)
    shares: Shares = (
        ops.divide(percents, 100)
        if isinstance(percents, EmberTensor)
        else [percent / 100 for percent in percents]
    )
    return _quantile("percentile", x, (shares, shape), axis, keepdims, method)


@composite(rule=rules.REAL_FLOAT)
def median(x: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The middle element along the axes, the mean of the two in the middle of an even number; NaN of nothing."""
    return quantile(x, 0.5, axis, keepdims=keepdims)
