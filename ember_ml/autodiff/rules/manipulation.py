"""The same elements in another shape or order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.rules import by_operand, rule
from ember_ml.backend.axes import listed

by_operand(ops.reshape, x=lambda g, out, x, shape, *, copy=None: ops.reshape(g, x.shape))
by_operand(ops.broadcast_to, x=lambda g, out, x, shape: g)
by_operand(ops.flip, x=lambda g, out, x, axis=None: ops.flip(g, axis))
by_operand(ops.copy, x=lambda g, out, x: g)
by_operand(ops.view_as_real, x=lambda g, out, x: ops.view_as_complex(g))
by_operand(ops.view_as_complex, x=lambda g, out, x: ops.view_as_real(g))
by_operand(
    ops.make_complex,
    real=lambda g, out, real, imag: ops.real(g),
    imag=lambda g, out, real, imag: ops.imag(g),
)


@rule(ops.permute_dims)
def _(g: Any, out: Any, x: Any, axes: Sequence[int] | None = None) -> Any:
    if axes is None:
        return ops.permute_dims(g)
    ndim = len(axes)
    order = [0] * ndim
    for place, axis in enumerate(axes):
        order[axis] = place
    return ops.permute_dims(g, order)


@rule(ops.roll)
def _(
    g: Any,
    out: Any,
    x: Any,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
) -> Any:
    return ops.roll(
        g, [-one for one in listed(shift)] if axis is not None else -sum(listed(shift)), axis
    )


@rule(ops.tile)
def _(g: Any, out: Any, x: Any, repetitions: int | Sequence[int]) -> Any:
    ndim = out.ndim
    shape = (1,) * (ndim - x.ndim) + x.shape
    counts = (1,) * (ndim - len(listed(repetitions))) + listed(repetitions)
    pairs = [length for pair in zip(counts, shape, strict=True) for length in pair]
    return ops.reshape(ops.sum(ops.reshape(g, pairs), axis=tuple(range(0, 2 * ndim, 2))), x.shape)


@rule(ops.repeat)
def _(
    g: Any, out: Any, x: Any, repeats: int | Sequence[int] | EmberTensor, axis: int | None = None
) -> Any:
    if axis is None:
        return ops.reshape(_unrepeat(g, repeats, 0, x.size), x.shape)
    axis = axis % x.ndim
    return _unrepeat(g, repeats, axis, x.shape[axis])


def _unrepeat(g: Any, repeats: Any, axis: int, length: int) -> Any:
    """The sums of what came from each of `length` elements."""
    if isinstance(repeats, int):
        shape = g.shape
        folded = ops.reshape(g, (*shape[:axis], length, repeats, *shape[axis + 1 :]))
        return ops.sum(folded, axis=axis + 1)
    places = convert_to_tensor(range(length), "int64", backend=g.backend)
    owners = ops.repeat(places, repeats)
    return ops.moveaxis(ops.segment_sum(ops.moveaxis(g, axis, 0), owners, length), 0, axis)


@rule(ops.unfold)
def _(g: Any, out: Any, x: Any, axis: int, size: int, step: int = 1) -> Any:
    length = x.shape[axis]
    if g.size == 0:
        return ops.zeros_like(x)
    summed = ops.signal.overlap_add(ops.moveaxis(g, axis % x.ndim, -2), step)
    missing = length - summed.shape[-1]
    if missing:
        summed = ops.pad_constant(summed, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    return ops.moveaxis(summed, -1, axis)
