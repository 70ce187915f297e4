"""VJP rules of reductions, sorting and counting."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.dtype import EmberDType
from ember_ml._core.tensor import Tensor
from ember_ml._core.types import Axis
from ember_ml.autodiff.rules import vjp_rule, vjps
from ember_ml.autodiff.rules.helpers import conj, with_keepdims
from ember_ml.backend.axes import count, normalize


def _expand(x: Tensor, like: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    """Return a reduced tensor broadcast over the reduced axes of `like`."""
    return ops.broadcast_to(with_keepdims(x, like, axis, keepdims), like.shape)


vjps(
    ops.sum,
    x=lambda g, out, x, axis=None, *, dtype=None, keepdims=False: _expand(g, x, axis, keepdims),
)


@vjp_rule(ops.mean)
def _mean(
    g: Tensor, out: Tensor, x: Tensor, axis: Axis = None, *, keepdims: bool = False
) -> Tensor:
    return _expand(g / max(count(x.shape, axis), 1), x, axis, keepdims)


@vjp_rule(ops.var)
def _var(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
) -> Tensor:
    degrees_of_freedom = count(x.shape, axis) - correction
    factor = 2 / degrees_of_freedom if degrees_of_freedom > 0 else math.nan
    return with_keepdims(g * factor, x, axis, keepdims) * (x - ops.mean(x, axis, keepdims=True))


@vjp_rule(ops.std)
def _std(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
) -> Tensor:
    constant = ops.equal(out, 0)
    slope = ops.where(constant, 0, g / ops.where(constant, 1, 2 * out))
    return _var(slope, out, x, axis, correction=correction, keepdims=keepdims)


def _extreme(
    g: Tensor, out: Tensor, x: Tensor, axis: Axis = None, *, keepdims: bool = False
) -> Tensor:
    """Share the gradient between equal extremes."""
    is_extreme = ops.astype(ops.equal(x, with_keepdims(out, x, axis, keepdims)), g.dtype)
    return is_extreme * (
        with_keepdims(g, x, axis, keepdims) / ops.sum(is_extreme, axis, keepdims=True)
    )


vjps(ops.max, x=_extreme)
vjps(ops.min, x=_extreme)


@vjp_rule(ops.logsumexp)
def _logsumexp(
    g: Tensor, out: Tensor, x: Tensor, axis: Axis = None, *, keepdims: bool = False
) -> Tensor:
    share = conj(ops.exp(x - with_keepdims(out, x, axis, keepdims)))
    return with_keepdims(g, x, axis, keepdims) * share


def _others(x: Tensor) -> Tensor:
    """Return, per element, the product of the others along the last axis, without a division."""
    one = ops.ones_like(x[..., :1])
    before = ops.cumprod(ops.concat([one, x[..., :-1]], axis=-1), -1)
    after = ops.cumprod(ops.concat([one, ops.flip(x[..., 1:], -1)], axis=-1), -1)
    return before * ops.flip(after, -1)


@vjp_rule(ops.prod)
def _prod(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    axis: Axis = None,
    *,
    dtype: EmberDType | None = None,
    keepdims: bool = False,
) -> Tensor:
    folded = normalize(axis, x.ndim)
    if not folded:
        return g
    wide = x if dtype is None else ops.astype(x, dtype)
    order = [one for one in range(x.ndim) if one not in folded] + list(folded)
    moved = ops.permute_dims(wide, order)
    rows = ops.reshape(moved, (*moved.shape[: -len(folded)], count(x.shape, axis)))
    others = ops.reshape(_others(rows), moved.shape)
    back = [order.index(one) for one in range(x.ndim)]
    return with_keepdims(g, x, axis, keepdims) * conj(ops.permute_dims(others, back))


@vjp_rule(ops.sort)
def _sort(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    axis: int = -1,
    *,
    descending: bool = False,
    stable: bool = True,
) -> Tensor:
    order = ops.argsort(x, axis, descending=descending)
    return ops.take_along_axis(g, ops.argsort(order, axis), axis)


@vjp_rule(ops.topk)
def _topk(
    g: tuple[Tensor, Tensor],
    out: tuple[Tensor, Tensor],
    x: Tensor,
    k: int,
    axis: int = -1,
    *,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002
) -> Tensor:
    return ops.put_along_axis(ops.zeros_like(x), out[1], g[0], axis)


vjps(ops.bincount, weights=lambda g, out, x, weights=None, minlength=0: ops.take(g, x, axis=0))
