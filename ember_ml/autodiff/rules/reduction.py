"""Folding axes."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand, rule
from ember_ml.autodiff.rules._folding import kept, spread
from ember_ml.autodiff.rules._shared import conj
from ember_ml.backend.axes import count, normalize

by_operand(
    ops.sum,
    x=lambda g, out, x, axis=None, *, dtype=None, keepdims=False: spread(g, x, axis, keepdims),
)


@rule(ops.mean)
def _mean(g: Any, out: Any, x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return spread(g / max(count(x.shape, axis), 1), x, axis, keepdims)


@rule(ops.var)
def _var(
    g: Any, out: Any, x: Any, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False
) -> Any:
    freedom = count(x.shape, axis) - correction
    factor = 2 / freedom if freedom > 0 else math.nan
    return kept(g * factor, x, axis, keepdims) * (x - ops.mean(x, axis, keepdims=True))


@rule(ops.std)
def _std(
    g: Any, out: Any, x: Any, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False
) -> Any:
    constant = ops.equal(out, 0)
    slope = ops.where(constant, 0, g / ops.where(constant, 1, 2 * out))
    return _var(slope, out, x, axis, correction=correction, keepdims=keepdims)


def _extreme(g: Any, out: Any, x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Equals share the gradient."""
    chosen = ops.astype(ops.equal(x, kept(out, x, axis, keepdims)), g.dtype)
    return chosen * (kept(g, x, axis, keepdims) / ops.sum(chosen, axis, keepdims=True))


by_operand(ops.max, x=_extreme)
by_operand(ops.min, x=_extreme)


@rule(ops.logsumexp)
def _logsumexp(g: Any, out: Any, x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    share = conj(ops.exp(x - kept(out, x, axis, keepdims)))
    return kept(g, x, axis, keepdims) * share


def _others(x: Any) -> Any:
    """For each element, the product of the others along the last axis; zeros do no harm."""
    one = ops.ones_like(x[..., :1])
    before = ops.cumprod(ops.concat([one, x[..., :-1]], axis=-1), -1)
    after = ops.cumprod(ops.concat([one, ops.flip(x[..., 1:], -1)], axis=-1), -1)
    return before * ops.flip(after, -1)


@rule(ops.prod)
def _prod(
    g: Any, out: Any, x: Any, axis: Any = None, *, dtype: Any = None, keepdims: bool = False
) -> Any:
    folded = normalize(axis, x.ndim)
    if not folded:
        return g
    wide = x if dtype is None else ops.astype(x, dtype)
    order = [one for one in range(x.ndim) if one not in folded] + list(folded)
    moved = ops.permute_dims(wide, order)
    rows = ops.reshape(moved, (*moved.shape[: -len(folded)], count(x.shape, axis)))
    others = ops.reshape(_others(rows), moved.shape)
    back = [order.index(one) for one in range(x.ndim)]
    return kept(g, x, axis, keepdims) * conj(ops.permute_dims(others, back))
