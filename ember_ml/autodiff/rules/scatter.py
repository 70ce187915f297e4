"""VJP rules of segment reductions."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjps
from ember_ml.autodiff.rules.helpers import conj


def _per_value(x: Tensor, ids: Tensor) -> Tensor:
    """Return, per value, the entry of its segment in x."""
    return ops.take(x, ids, axis=0)


def _mean(
    g: Tensor, out: Tensor, data: Tensor, segment_ids: Tensor, num_segments: int | None = None
) -> Tensor:
    shape = (-1,) + (1,) * (data.ndim - 1)
    ones = ops.ones_like(segment_ids, dtype=ops.real(data).dtype)
    counts = ops.segment_sum(ones, segment_ids, out.shape[0])
    return _per_value(g / ops.reshape(ops.maximum(counts, 1.0), shape), segment_ids)


def _prod(
    g: Tensor, out: Tensor, data: Tensor, segment_ids: Tensor, num_segments: int | None = None
) -> Tensor:
    """Return g times the product of the segment's other values, without a division by zero."""
    is_zero = data == 0.0
    nonzero = ops.where(is_zero, 1.0, data)
    zeros = ops.segment_sum(ops.astype(is_zero, data.dtype), segment_ids, out.shape[0])
    rest = ops.segment_prod(nonzero, segment_ids, out.shape[0])
    product_of_others = ops.where(zeros == 1.0, rest, 0.0)
    others = ops.where(
        is_zero, _per_value(product_of_others, segment_ids), _per_value(out, segment_ids) / nonzero
    )
    return _per_value(g, segment_ids) * conj(others)


def _extreme(
    g: Tensor, out: Tensor, data: Tensor, segment_ids: Tensor, num_segments: int | None = None
) -> Tensor:
    """Share the gradient between equal extremes."""
    is_extreme = ops.astype(data == _per_value(out, segment_ids), data.dtype)
    counts = ops.maximum(ops.segment_sum(is_extreme, segment_ids, out.shape[0]), 1.0)
    return _per_value(g / counts, segment_ids) * is_extreme


vjps(
    ops.segment_sum,
    data=lambda g, out, data, segment_ids, num_segments=None: _per_value(g, segment_ids),
)
vjps(ops.segment_mean, data=_mean)
vjps(ops.segment_prod, data=_prod)
vjps(ops.segment_max, data=_extreme)
vjps(ops.segment_min, data=_extreme)
