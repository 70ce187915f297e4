"""How often values occur."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dispatch import MaskLike, Op, around, composite, op
from ember_ml._core.dtype import DEFAULT_FLOAT
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.ops.creation import filled
from ember_ml.ops.dtypes import floating
from ember_ml.ops.scatter import slots_needed

__all__ = ["bincount", "histogram"]


def _long_enough(op: Op) -> Callable[..., Any]:
    """Have the length of sums of weights read before a tape writes the call down."""
    dispatch = op.function

    def call(x: Any, weights: Any = None, minlength: int = 0) -> Any:
        if weights is not None and isinstance(x, EmberTensor):
            minlength = max(minlength, slots_needed("bincount", x))
        return dispatch(x, weights, minlength)

    return call


@around(_long_enough)
@op(rule=rules.INTEGER)
def bincount(x: TensorLike, weights: MaskLike | None = None, minlength: int = 0) -> Tensor:
    """How often 0, 1, ... max(x) occur in a vector, or the sum of the weights of each.

    Args:
        x: a vector of integers, none of them negative.
        weights: one per element; the sums are in their dtype, float32 for integers.
        minlength: how long the result is at least.
    """


def _spread(values: Tensor, bins: int, bounds: tuple[float, float] | None) -> Tensor:
    """The edges of bins of equal width between the bounds, or else the extreme values."""
    if bins < 1:
        raise ArgumentError(f"histogram: bins must be at least 1, not {bins}")
    if bounds is not None and not bounds[0] <= bounds[1]:
        raise ArgumentError(f"histogram: range must go up, not {bounds}")
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


def _like(data: Any, x: Tensor) -> Tensor:
    return convert_to_tensor(data, x.dtype, x.device, backend=x.backend)


def _cuts(ordered: Tensor, edges: Tensor) -> Tensor:
    """Where the edges cut the ordered values; the last bin includes its end."""
    inner = ops.searchsorted(ordered, edges[:-1], side="left")
    return ops.concat([inner, ops.searchsorted(ordered, edges[-1:], side="right")], axis=0)


def _weigh(values: Tensor, weights: Tensor, edges: Tensor) -> Tensor:
    """The sum of the weights in each bin, from running sums."""
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
    """How many elements fall into each bin, and the edges of the bins. NaN falls into none.

    Args:
        x: the tensor.
        bins: how many bins of equal width, or their edges in ascending order.
        range: the first and the last edge; else the extreme values.
        weights: one per element, summed in place of counting.
        density: whether to divide such that the integral is 1.
    """
    values = ops.reshape(floating(x), (-1,))
    edges = _spread(values, bins, range) if isinstance(bins, int) else _like(bins, values)
    if edges.ndim != 1 or edges.size < 2:
        raise ShapeError(
            f"histogram: bins must be a vector of at least 2 edges; it is {edges.shape}"
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
