"""Counts and histograms."""

from __future__ import annotations

from collections.abc import Callable

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dispatch import MaskLike, Op, around, composite, op
from ember_ml._core.dtype import DEFAULT_FLOAT
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.ops.creation import filled
from ember_ml.ops.dtypes import floating
from ember_ml.ops.scatter import slots_needed

__all__ = ["bincount", "histogram"]


def _long_enough(op: Op) -> Callable[..., Tensor]:
    """Read the result's length before a tape records the call, if weights are summed."""
    dispatch = op.function

    def call(x: TensorLike, weights: TensorLike | None = None, minlength: int = 0) -> Tensor:
        if weights is not None and isinstance(x, EmberTensor):
            minlength = max(minlength, slots_needed("bincount", x))
        return dispatch(x, weights, minlength)

    return call


@around(_long_enough)
@op(rule=rules.INTEGER)
def bincount(x: TensorLike, weights: MaskLike | None = None, minlength: int = 0) -> Tensor:
    """Return how often each of 0, 1, ..., max(x) occurs, or the sums of their weights.

    Args:
        x: Vector of nonnegative integers.
        weights: Weight of each element. Sums have its dtype, or float32 for integers. Default:
            count.
        minlength: Minimum length of the result.
    """


def _spread(values: Tensor, bins: int, bounds: tuple[float, float] | None) -> Tensor:
    """Return the edges of equal-width bins between the bounds, or between the extreme values."""
    if bins < 1:
        raise ArgumentError(f"histogram: bins must be at least 1; got {bins}")
    if bounds is not None and not bounds[0] <= bounds[1]:
        raise ArgumentError(f"histogram: range must be ascending; got {bounds}")
    if bounds is None and values.size == 0:
        bounds = (0.0, 1.0)
    if bounds is None:
        low, high = ops.min(values), ops.max(values)
    else:
        low, high = _like(bounds[0], values), _like(bounds[1], values)
    half = ops.where(ops.equal(low, high), _like(0.5, values), 0)
    low, high = ops.subtract(low, half), ops.add(high, half)
    steps = ops.subtract(ops.cumsum(filled(ops.ones_like(low), bins), 0), 1)
    inner = ops.add(low, ops.multiply(steps, ops.divide(ops.subtract(high, low), bins)))
    return ops.concat([inner, ops.reshape(high, (1,))], axis=0)


def _like(data: TensorLike, x: Tensor) -> Tensor:
    return convert_to_tensor(data, x.dtype, x.device, backend=x.backend)


def _cuts(ordered: Tensor, edges: Tensor) -> Tensor:
    """Return the positions of the edges in the sorted values; the last bin includes its end."""
    inner = ops.searchsorted(ordered, edges[:-1], side="left")
    return ops.concat([inner, ops.searchsorted(ordered, edges[-1:], side="right")], axis=0)


def _weigh(values: Tensor, weights: Tensor, edges: Tensor) -> Tensor:
    """Return the sum of the weights in each bin, computed from running sums."""
    order = ops.argsort(values)
    wide = DEFAULT_FLOAT if weights.dtype.bits == 16 and weights.dtype.is_floating else None
    sums = ops.cumulative_sum(ops.take(weights, order, axis=0), dtype=wide, include_initial=True)
    cuts = _cuts(ops.take(values, order, axis=0), edges)
    total = ops.diff(ops.take(sums, cuts, axis=0))
    return total if wide is None else ops.astype(total, weights.dtype)


@composite(rule=rules.REAL_FLOAT)
def histogram(
    x: TensorLike,
    bins: int | TensorLike = 10,
    range: tuple[float, float] | None = None,
    weights: TensorLike | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the number of elements in each bin and the bin edges; NaN falls into no bin.

    Args:
        x: Input tensor.
        bins: Number of equal-width bins, or their edges in ascending order.
        range: First and last edge. Default: the smallest and largest element.
        weights: Weight of each element, summed instead of counted.
        density: Whether to normalize to an integral of 1.
    """
    values = ops.reshape(floating(x), (-1,))
    if isinstance(bins, float):
        raise ArgumentTypeError(f"histogram: bins must be an integer or the edges; got {bins}")
    edges = _spread(values, bins, range) if isinstance(bins, int) else _like(bins, values)
    if edges.ndim != 1 or edges.size < 2:
        raise ShapeError(
            f"histogram: bins has shape {edges.shape}; expected a vector of at least 2 edges"
        )
    if weights is None:
        counts = ops.diff(_cuts(ops.sort(values), edges))
    else:
        weights = convert_to_tensor(weights, backend=x.backend)
        counts = _weigh(values, ops.reshape(weights, values.shape), edges)
    if density:
        shares = ops.divide(ops.astype(counts, edges.dtype), ops.sum(counts))
        counts = ops.divide(shares, ops.diff(edges))
    return counts, edges
