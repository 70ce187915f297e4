"""VJP rules of cumulative sums, products and extremes."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.dtype import EmberDType
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule, vjps
from ember_ml.autodiff.rules.helpers import conj


def _last(x: Tensor, axis: int | None) -> Tensor:
    """Return x with `axis` moved to the end; flattened if `axis` is None."""
    return ops.reshape(x, (-1,)) if axis is None else ops.moveaxis(x, axis, -1)


def _restore_axis(x: Tensor, like: Tensor, axis: int | None) -> Tensor:
    """Undo `_last`."""
    return ops.reshape(x, like.shape) if axis is None else ops.moveaxis(x, -1, axis)


def _shift(x: Tensor, step: int, end: float) -> Tensor:
    """Shift x by `step` towards the start of the last axis, and fill with `end`."""
    return ops.concat([x[..., step:], ops.full_like(x[..., :step], end)], axis=-1)


def _recurrence(factor: Tensor, value: Tensor) -> Tensor:
    """Return r[i] = value[i] + factor[i] * r[i + 1] along the last axis, in log2(size) steps."""
    step = 1
    while step < value.shape[-1]:
        value = value + factor * _shift(value, step, 0.0)
        factor = factor * _shift(factor, step, 0.0)
        step *= 2
    return value


@vjp_rule(ops.cumsum)
def _cumsum(
    g: Tensor, out: Tensor, x: Tensor, axis: int | None = None, *, dtype: EmberDType | None = None
) -> Tensor:
    backwards = 0 if axis is None else axis
    summed = ops.flip(ops.cumsum(ops.flip(g, backwards), backwards), backwards)
    return ops.reshape(summed, x.shape) if axis is None else summed


@vjp_rule(ops.cumprod)
def _cumprod(
    g: Tensor, out: Tensor, x: Tensor, axis: int | None = None, *, dtype: EmberDType | None = None
) -> Tensor:
    """Use a recurrence: a division by x would fail at zeros."""
    rows = _last(x if dtype is None else ops.astype(x, dtype), axis)
    before = ops.concat([ops.ones_like(rows[..., :1]), _last(out, axis)[..., :-1]], axis=-1)
    after = _recurrence(conj(_shift(rows, 1, 0.0)), _last(g, axis))
    return _restore_axis(conj(before) * after, x, axis)


@vjp_rule(ops.logcumsumexp)
def _logcumsumexp(g: Tensor, out: Tensor, x: Tensor, axis: int | None = None) -> Tensor:
    """Use a recurrence with factors of at most 1."""
    sums, rows = _last(out, axis), _last(x, axis)
    after = _recurrence(_ratio(sums, _shift(sums, 1, math.inf)), _last(g, axis))
    return _restore_axis(_ratio(rows, sums) * after, x, axis)


def _ratio(x: Tensor, y: Tensor) -> Tensor:
    """Return exp(x - y), and 1 where both are the same infinity."""
    same = ops.equal(x, y)
    return ops.exp(ops.where(same, 0.0, x) - ops.where(same, 0.0, y))


def _extreme(g: Tensor, out: Tensor, x: Tensor, axis: int | None = None) -> Tensor:
    """Pass each gradient to the last element so far that equals the result."""
    rows, best = _last(x, axis), _last(out, axis)
    is_new = ops.astype(ops.logical_or(ops.equal(rows, best), ops.isnan(rows)), g.dtype)
    since = _recurrence(1 - _shift(is_new, 1, 1.0), _last(g, axis))
    return _restore_axis(is_new * since, x, axis)


vjps(ops.cummax, x=_extreme)
vjps(ops.cummin, x=_extreme)
