"""Running sums, products and extremes."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand, rule
from ember_ml.autodiff.rules._shared import conj


def _last(x: Any, axis: int | None) -> Any:
    """The axis at the end; the flat tensor without one."""
    return ops.reshape(x, (-1,)) if axis is None else ops.moveaxis(x, axis, -1)


def _back(x: Any, like: Any, axis: int | None) -> Any:
    return ops.reshape(x, like.shape) if axis is None else ops.moveaxis(x, -1, axis)


def _later(x: Any, step: int, end: float) -> Any:
    """Each element's successor at that distance along the last axis; `end` beyond it."""
    return ops.concat([x[..., step:], ops.full_like(x[..., :step], end)], axis=-1)


def _recurrence(factor: Any, value: Any) -> Any:
    """r[i] = value[i] + factor[i] * r[i + 1] along the last axis, in a logarithm of its length."""
    step = 1
    while step < value.shape[-1]:
        value = value + factor * _later(value, step, 0.0)
        factor = factor * _later(factor, step, 0.0)
        step *= 2
    return value


@rule(ops.cumsum)
def _cumsum(g: Any, out: Any, x: Any, axis: Any = None, *, dtype: Any = None) -> Any:
    backwards = 0 if axis is None else axis
    found = ops.flip(ops.cumsum(ops.flip(g, backwards), backwards), backwards)
    return ops.reshape(found, x.shape) if axis is None else found


@rule(ops.cumprod)
def _cumprod(g: Any, out: Any, x: Any, axis: Any = None, *, dtype: Any = None) -> Any:
    """By a recurrence, as division by x would not do for zeros."""
    rows = _last(x if dtype is None else ops.astype(x, dtype), axis)
    before = ops.concat([ops.ones_like(rows[..., :1]), _last(out, axis)[..., :-1]], axis=-1)
    after = _recurrence(conj(_later(rows, 1, 0.0)), _last(g, axis))
    return _back(conj(before) * after, x, axis)


@rule(ops.logcumsumexp)
def _logcumsumexp(g: Any, out: Any, x: Any, axis: Any = None) -> Any:
    """By a recurrence whose factors are at most 1."""
    sums, rows = _last(out, axis), _last(x, axis)
    after = _recurrence(_ratio(sums, _later(sums, 1, math.inf)), _last(g, axis))
    return _back(_ratio(rows, sums) * after, x, axis)


def _ratio(x: Any, y: Any) -> Any:
    """exp(x - y), 1 where both are the same infinity."""
    return ops.exp(ops.where(ops.equal(x, y), 0.0, x - y))


def _extreme(g: Any, out: Any, x: Any, axis: Any = None) -> Any:
    """Each result's gradient goes to the last element so far that is equal to it."""
    rows, best = _last(x, axis), _last(out, axis)
    hit = ops.astype(ops.logical_or(ops.equal(rows, best), ops.isnan(rows)), g.dtype)
    since = _recurrence(1 - _later(hit, 1, 1.0), _last(g, axis))
    return _back(hit * since, x, axis)


by_operand(ops.cummax, x=_extreme)
by_operand(ops.cummin, x=_extreme)
