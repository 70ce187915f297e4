"""VJP rules of matrix products and other contractions."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule, vjps
from ember_ml.autodiff.rules.helpers import adjoint, conj, flat_rows, unbroadcast

Axes = int | tuple[Sequence[int], Sequence[int]]


def _left(g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the gradient of x in x @ y."""
    if y.ndim == 1:
        return g * conj(y) if x.ndim == 1 else ops.expand_dims(g, -1) * conj(y)
    if x.ndim == 1:
        return ops.matvec(conj(y), g)
    if y.ndim == 2:
        flat = ops.matmul(flat_rows(g), adjoint(y))
        return flat if x.ndim == 2 else ops.reshape(flat, x.shape)
    if x.ndim == 2:  # one product for all batches
        axes = (*range(y.ndim - 2), y.ndim - 1)
        return ops.tensordot(g, conj(y), axes=(axes, axes))
    return ops.matmul(g, adjoint(y))


def _right(g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the gradient of y in x @ y."""
    if x.ndim == 1:
        return g * conj(x) if y.ndim == 1 else ops.expand_dims(conj(x), -1) * ops.expand_dims(g, -2)
    if y.ndim == 1:
        return ops.matmul(ops.reshape(g, (-1,)), conj(flat_rows(x)))
    if y.ndim == 2:  # one product for all batches
        return ops.matmul(adjoint(flat_rows(x)), flat_rows(g))
    return ops.matmul(adjoint(x), g)


vjps(
    ops.matmul,
    x=lambda g, out, x, y: _left(g, x, y),
    y=lambda g, out, x, y: _right(g, x, y),
)
vjps(
    ops.bmm,
    x=lambda g, out, x, y: ops.bmm(g, adjoint(y)),
    y=lambda g, out, x, y: ops.bmm(adjoint(x), g),
)
vjps(
    ops.matvec,
    x=lambda g, out, x, y: ops.expand_dims(g, -1) * ops.expand_dims(conj(y), -2),
    y=lambda g, out, x, y: ops.matvec(adjoint(x), g),
)
vjps(
    ops.outer,
    x=lambda g, out, x, y: ops.matmul(g, conj(y)),
    y=lambda g, out, x, y: ops.matmul(conj(x), g),
)
vjps(
    ops.vdot,
    x=lambda g, out, x, y: conj(g) * ops.reshape(y, x.shape),
    y=lambda g, out, x, y: g * ops.reshape(x, y.shape),
)


vjps(
    ops.addmm,
    input=lambda g, out, input, x, y, alpha=1, beta=1: g * conj(beta),  # noqa: A006
    x=lambda g, out, input, x, y, alpha=1, beta=1: _left(g * conj(alpha), x, y),  # noqa: A006
    y=lambda g, out, input, x, y, alpha=1, beta=1: _right(g * conj(alpha), x, y),  # noqa: A006
)


@vjp_rule(ops.inner)
def _(g: Tensor, out: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    if x.ndim == 0 or y.ndim == 0:
        return g * conj(y), g * conj(x)
    first = tuple(range(x.ndim - 1))
    return ops.tensordot(g, conj(y), y.ndim - 1), ops.tensordot(g, conj(x), (first, first))


def _restore_axis(part: Tensor, x: Tensor, axis: int) -> Tensor:
    """Move the last axis of x's gradient, which may be broadcast, back to `axis`."""
    at = axis % x.ndim
    shape = x.shape
    return ops.moveaxis(unbroadcast(part, (*shape[:at], *shape[at + 1 :], shape[at])), -1, at)


@vjp_rule(ops.vecdot)
def _(g: Tensor, out: Tensor, x: Tensor, y: Tensor, axis: int = -1) -> tuple[Tensor, Tensor]:
    wide = ops.expand_dims(g, -1)
    of_x = conj(wide) * ops.moveaxis(y, axis, -1)
    of_y = wide * ops.moveaxis(x, axis, -1)
    return _restore_axis(of_x, x, axis), _restore_axis(of_y, y, axis)


@vjp_rule(ops.cross)
def _(g: Tensor, out: Tensor, x: Tensor, y: Tensor, axis: int = -1) -> tuple[Tensor, Tensor]:
    last_g = ops.moveaxis(g, axis, -1)
    last_x, last_y = ops.moveaxis(conj(x), axis, -1), ops.moveaxis(conj(y), axis, -1)
    return _restore_axis(ops.cross(last_y, last_g), x, axis), _restore_axis(
        ops.cross(last_g, last_x), y, axis
    )


@vjp_rule(ops.kron)
def _(g: Tensor, out: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    ndim = g.ndim
    of_x, of_y = ((1,) * (ndim - one.ndim) + one.shape for one in (x, y))
    pairs = [length for pair in zip(of_x, of_y, strict=True) for length in pair]
    order = (*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2))
    grid = ops.permute_dims(ops.reshape(g, pairs), order)  # the axes of x, then the axes of y
    first = tuple(range(ndim))
    dx = ops.tensordot(grid, conj(ops.reshape(y, of_y)), ndim)
    dy = ops.tensordot(grid, conj(ops.reshape(x, of_x)), (first, first))
    return ops.reshape(dx, x.shape), ops.reshape(dy, y.shape)


def _contracted(x: Tensor, y: Tensor, axes: Axes) -> tuple[list[int], list[int]]:
    """Return the non-negative axes of x and y that a tensordot sums over."""
    if isinstance(axes, int):
        return list(range(x.ndim - axes, x.ndim)), list(range(axes))
    of_x, of_y = ([part] if isinstance(part, int) else list(part) for part in axes)
    return [axis % x.ndim for axis in of_x], [axis % y.ndim for axis in of_y]


def _permute_to(x: Tensor, order: list[int]) -> Tensor:
    """Return x with axis i moved to order[i]."""
    return ops.permute_dims(x, sorted(range(len(order)), key=order.__getitem__))


@vjp_rule(ops.tensordot)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    y: Tensor,
    axes: Axes = 2,
) -> tuple[Tensor, Tensor]:
    of_x, of_y = _contracted(x, y, axes)
    free_x = [axis for axis in range(x.ndim) if axis not in of_x]
    free_y = [axis for axis in range(y.ndim) if axis not in of_y]
    num_free = len(free_x)
    dx = ops.tensordot(g, conj(y), (tuple(range(num_free, g.ndim)), tuple(free_y)))
    dy = ops.tensordot(conj(x), g, (tuple(free_x), tuple(range(num_free))))
    x_of_y = dict(zip(of_y, of_x, strict=True))
    y_of_x = dict(zip(of_x, of_y, strict=True))
    order_x = free_x + [x_of_y[axis] for axis in sorted(of_y)]
    order_y = [y_of_x[axis] for axis in sorted(of_x)] + free_y
    return _permute_to(dx, order_x), _permute_to(dy, order_y)
