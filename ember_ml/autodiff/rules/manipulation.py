"""VJP rules of ops that create, cast, reshape, reorder, join, split and pad tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule, vjps
from ember_ml.backend.axes import listed
from ember_ml.ops import creation, joining
from ember_ml.ops.gradients import alias
from ember_ml.ops.indexing import additem, getitem

vjps(ops.reshape, x=lambda g, out, x, shape, *, copy=None: ops.reshape(g, x.shape))
vjps(ops.broadcast_to, x=lambda g, out, x, shape: g)
vjps(ops.flip, x=lambda g, out, x, axis=None: ops.flip(g, axis))
vjps(ops.copy, x=lambda g, out, x: g)
vjps(ops.view_as_real, x=lambda g, out, x: ops.view_as_complex(g))
vjps(ops.view_as_complex, x=lambda g, out, x: ops.view_as_real(g))
vjps(
    ops.make_complex,
    real=lambda g, out, real, imag: ops.real(g),
    imag=lambda g, out, real, imag: ops.imag(g),
)


@vjp_rule(ops.permute_dims)
def _(g: Tensor, out: Tensor, x: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    if axes is None:
        return ops.permute_dims(g)
    ndim = len(axes)
    order = [0] * ndim
    for index, axis in enumerate(axes):
        order[axis] = index
    return ops.permute_dims(g, order)


@vjp_rule(ops.roll)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
) -> Tensor:
    return ops.roll(
        g, [-one for one in listed(shift)] if axis is not None else -sum(listed(shift)), axis
    )


@vjp_rule(ops.tile)
def _(g: Tensor, out: Tensor, x: Tensor, repetitions: int | Sequence[int]) -> Tensor:
    ndim = out.ndim
    shape = (1,) * (ndim - x.ndim) + x.shape
    counts = (1,) * (ndim - len(listed(repetitions))) + listed(repetitions)
    pairs = [length for pair in zip(counts, shape, strict=True) for length in pair]
    return ops.reshape(ops.sum(ops.reshape(g, pairs), axis=tuple(range(0, 2 * ndim, 2))), x.shape)


@vjp_rule(ops.repeat)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    repeats: int | Sequence[int] | Tensor,
    axis: int | None = None,
) -> Tensor:
    if axis is None:
        return ops.reshape(_unrepeat(g, repeats, 0, x.size), x.shape)
    axis = axis % x.ndim
    return _unrepeat(g, repeats, axis, x.shape[axis])


def _unrepeat(g: Tensor, repeats: int | Sequence[int] | Tensor, axis: int, length: int) -> Tensor:
    """Return the sum of the gradients of each element's repetitions."""
    if isinstance(repeats, int):
        shape = g.shape
        folded = ops.reshape(g, (*shape[:axis], length, repeats, *shape[axis + 1 :]))
        return ops.sum(folded, axis=axis + 1)
    indices = convert_to_tensor(range(length), "int64", backend=g.backend)
    owners = ops.repeat(indices, repeats)
    return ops.moveaxis(ops.segment_sum(ops.moveaxis(g, axis, 0), owners, length), 0, axis)


@vjp_rule(ops.unfold)
def _(g: Tensor, out: Tensor, x: Tensor, axis: int, size: int, step: int = 1) -> Tensor:
    length = x.shape[axis]
    if g.size == 0:
        return ops.zeros_like(x)
    summed = ops.signal.overlap_add(ops.moveaxis(g, axis % x.ndim, -2), step)
    missing = length - summed.shape[-1]
    if missing:
        summed = ops.pad_constant(summed, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    return ops.moveaxis(summed, -1, axis)


vjps(ops.stack, arrays=lambda g, out, arrays, axis=0: ops.unstack(g, axis))
vjps(ops.unstack, x=lambda g, out, x, axis=0: ops.stack(g, axis))


@vjp_rule(joining.split_at)
def _(g: Sequence[Tensor], out: Tensor, x: Tensor, indices: Sequence[int], axis: int = 0) -> Tensor:
    edges = [0, *indices, x.shape[axis]]
    if edges == sorted(edges):
        return ops.concat(g, axis)
    before = (slice(None),) * axis
    result = ops.zeros_like(x)  # overlapping parts are added
    for part, (start, stop) in zip(g, pairwise(edges), strict=True):
        result = additem(result, part, (*before, slice(start, stop)))
    return result


@vjp_rule(ops.concat)
def _(g: Tensor, out: Tensor, arrays: Sequence[Tensor], axis: int | None = 0) -> Sequence[Tensor]:
    if axis is None:
        cuts = list(accumulate([x.size for x in arrays]))[:-1]
        parts = joining.split_at(g, cuts, 0)
        return [ops.reshape(part, x.shape) for part, x in zip(parts, arrays, strict=True)]
    cuts = list(accumulate([x.shape[axis] for x in arrays]))[:-1]
    return joining.split_at(g, cuts, axis % g.ndim)


@vjp_rule(ops.pad_constant)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    widths: Sequence[tuple[int, int]],
    value: bool | int | float | complex = 0,
) -> Tensor:
    key = [
        slice(before, before + length) for length, (before, _) in zip(x.shape, widths, strict=True)
    ]
    return getitem(g, tuple(key))


vjps(creation.filled, x=lambda g, out, x, shape: g)
vjps(ops.tril, x=lambda g, out, x, k=0: ops.tril(g, k))
vjps(ops.triu, x=lambda g, out, x, k=0: ops.triu(g, k))


@vjp_rule(creation.coordinate_matrices)
def _(
    g: Sequence[Tensor], out: Tensor, tensors: Sequence[Tensor], indexing: str = "xy"
) -> list[Tensor]:
    axes = list(range(len(tensors)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = [1, 0]
    return [
        ops.reshape(ops.sum(part, axis=tuple(sorted({*axes} - {axis}))), x.shape)
        for part, axis, x in zip(g, axes, tensors, strict=True)
    ]


vjps(ops.astype, x=lambda g, out, x, dtype, *, copy=True, device=None: g)


vjps(alias, x=lambda g, out, x: g)
