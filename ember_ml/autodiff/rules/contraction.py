"""Products that sum over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand, rule
from ember_ml.autodiff.rules._matrices import adjoint
from ember_ml.autodiff.rules._shared import conj
from ember_ml.autodiff.sweep import unbroadcast


def rows(x: Any) -> Any:
    """All axes but the last as one."""
    return x if x.ndim == 2 else ops.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _left(g: Any, x: Any, y: Any) -> Any:
    """The gradient of x in x @ y."""
    if y.ndim == 1:
        return g * conj(y) if x.ndim == 1 else ops.expand_dims(g, -1) * conj(y)
    if x.ndim == 1:
        return ops.matvec(conj(y), g)
    if y.ndim == 2:
        flat = ops.matmul(rows(g), adjoint(y))
        return flat if x.ndim == 2 else ops.reshape(flat, x.shape)
    if x.ndim == 2:  # one product over the whole stack
        axes = (*range(y.ndim - 2), y.ndim - 1)
        return ops.tensordot(g, conj(y), axes=(axes, axes))
    return ops.matmul(g, adjoint(y))


def _right(g: Any, x: Any, y: Any) -> Any:
    """The gradient of y in x @ y."""
    if x.ndim == 1:
        return g * conj(x) if y.ndim == 1 else ops.expand_dims(conj(x), -1) * ops.expand_dims(g, -2)
    if y.ndim == 1:
        return ops.matmul(ops.reshape(g, (-1,)), conj(rows(x)))
    if y.ndim == 2:  # one product over the whole stack
        return ops.matmul(adjoint(rows(x)), rows(g))
    return ops.matmul(adjoint(x), g)


by_operand(
    ops.matmul,
    x=lambda g, out, x, y: _left(g, x, y),
    y=lambda g, out, x, y: _right(g, x, y),
)
by_operand(
    ops.bmm,
    x=lambda g, out, x, y: ops.bmm(g, adjoint(y)),
    y=lambda g, out, x, y: ops.bmm(adjoint(x), g),
)
by_operand(
    ops.matvec,
    x=lambda g, out, x, y: ops.expand_dims(g, -1) * ops.expand_dims(conj(y), -2),
    y=lambda g, out, x, y: ops.matvec(adjoint(x), g),
)
by_operand(
    ops.outer,
    x=lambda g, out, x, y: ops.matmul(g, conj(y)),
    y=lambda g, out, x, y: ops.matmul(conj(x), g),
)
by_operand(
    ops.vdot,
    x=lambda g, out, x, y: conj(g) * ops.reshape(y, x.shape),
    y=lambda g, out, x, y: g * ops.reshape(x, y.shape),
)


def _beside(g: Any, out: Any, input: Any, x: Any, y: Any, alpha: Any = 1, beta: Any = 1) -> Any:  # noqa: A002
    return g * conj(beta)


def _first(g: Any, out: Any, input: Any, x: Any, y: Any, alpha: Any = 1, beta: Any = 1) -> Any:  # noqa: A002
    return _left(g * conj(alpha), x, y)


def _second(g: Any, out: Any, input: Any, x: Any, y: Any, alpha: Any = 1, beta: Any = 1) -> Any:  # noqa: A002
    return _right(g * conj(alpha), x, y)


by_operand(ops.addmm, input=_beside, x=_first, y=_second)


@rule(ops.inner)
def _(g: Any, out: Any, x: Any, y: Any) -> Any:
    if x.ndim == 0 or y.ndim == 0:
        return g * conj(y), g * conj(x)
    first = tuple(range(x.ndim - 1))
    return ops.tensordot(g, conj(y), y.ndim - 1), ops.tensordot(g, conj(x), (first, first))


def _moved(part: Any, x: Any, axis: int) -> Any:
    """The gradient of x, of that of x with `axis` at the end, which may be broadcast."""
    at = axis % x.ndim
    shape = x.shape
    return ops.moveaxis(unbroadcast(part, (*shape[:at], *shape[at + 1 :], shape[at])), -1, at)


@rule(ops.vecdot)
def _(g: Any, out: Any, x: Any, y: Any, axis: int = -1) -> Any:
    wide = ops.expand_dims(g, -1)
    of_x = conj(wide) * ops.moveaxis(y, axis, -1)
    of_y = wide * ops.moveaxis(x, axis, -1)
    return _moved(of_x, x, axis), _moved(of_y, y, axis)


@rule(ops.cross)
def _(g: Any, out: Any, x: Any, y: Any, axis: int = -1) -> Any:
    last_g = ops.moveaxis(g, axis, -1)
    last_x, last_y = ops.moveaxis(conj(x), axis, -1), ops.moveaxis(conj(y), axis, -1)
    return _moved(ops.cross(last_y, last_g), x, axis), _moved(ops.cross(last_g, last_x), y, axis)


@rule(ops.kron)
def _(g: Any, out: Any, x: Any, y: Any) -> Any:
    ndim = g.ndim
    of_x, of_y = ((1,) * (ndim - one.ndim) + one.shape for one in (x, y))
    pairs = [length for pair in zip(of_x, of_y, strict=True) for length in pair]
    order = (*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2))
    grid = ops.permute_dims(ops.reshape(g, pairs), order)  # the axes of x, then those of y
    first = tuple(range(ndim))
    dx = ops.tensordot(grid, conj(ops.reshape(y, of_y)), ndim)
    dy = ops.tensordot(grid, conj(ops.reshape(x, of_x)), (first, first))
    return ops.reshape(dx, x.shape), ops.reshape(dy, y.shape)


def _summed(x: Any, y: Any, axes: Any) -> tuple[list[int], list[int]]:
    """The axes of x and of y that a tensordot sums over, counted from the front."""
    if isinstance(axes, int):
        return list(range(x.ndim - axes, x.ndim)), list(range(axes))
    of_x, of_y = ([part] if isinstance(part, int) else list(part) for part in axes)
    return [axis % x.ndim for axis in of_x], [axis % y.ndim for axis in of_y]


def _ordered(x: Any, order: list[int]) -> Any:
    """x, whose axis i is to become axis order[i]."""
    return ops.permute_dims(x, sorted(range(len(order)), key=order.__getitem__))


@rule(ops.tensordot)
def _(
    g: Any,
    out: Any,
    x: Any,
    y: Any,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
) -> Any:
    of_x, of_y = _summed(x, y, axes)
    free_x = [axis for axis in range(x.ndim) if axis not in of_x]
    free_y = [axis for axis in range(y.ndim) if axis not in of_y]
    kept = len(free_x)
    dx = ops.tensordot(g, conj(y), (tuple(range(kept, g.ndim)), tuple(free_y)))
    dy = ops.tensordot(conj(x), g, (tuple(free_x), tuple(range(kept))))
    met = dict(zip(of_y, of_x, strict=True))
    back = dict(zip(of_x, of_y, strict=True))
    order_x = free_x + [met[axis] for axis in sorted(of_y)]
    order_y = [back[axis] for axis in sorted(of_x)] + free_y
    return _ordered(dx, order_x), _ordered(dy, order_y)
