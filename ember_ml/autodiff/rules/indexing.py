"""VJP rules of indexing and slicing."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import bool_
from ember_ml._core.tensor import Tensor, wrap
from ember_ml.autodiff.rules import vjp_rule, vjps
from ember_ml.autodiff.rules.helpers import unbroadcast
from ember_ml.ops.indexing import additem, getitem, setitem

_BASIC = (int, slice, type(None), type(Ellipsis))


@vjp_rule(getitem)
def _(g: Tensor, out: Tensor, x: Tensor, key: object) -> Tensor:
    parts = key if type(key) is tuple else (key,)
    for part in parts:
        if type(part) not in _BASIC:
            return additem(ops.zeros_like(x), g, key)
    return setitem(ops.zeros_like(x), g, key)  # a basic index selects no element twice


vjps(
    setitem,
    x=lambda g, out, x, value, key: setitem(g, ops.zeros_like(value), key),
    value=lambda g, out, x, value, key: _value_gradient(g, value, key, _is_last_write(x, key)),
)
vjps(
    additem,
    x=lambda g, out, x, value, key: g,
    value=lambda g, out, x, value, key: _value_gradient(g, value, key),
)
vjps(
    ops.where,
    x=lambda g, out, condition, x=None, y=None: ops.where(condition, g, 0.0),
    y=lambda g, out, condition, x=None, y=None: ops.where(condition, 0.0, g),
)


def _is_last_write(x: Tensor, key: object) -> Tensor | None:
    """Return which written elements a later one at the same index does not replace.

    Return None if no index is repeated.
    """
    parts = key if type(key) is tuple else (key,)
    arrays = [part for part in parts if type(part) not in _BASIC]
    if not arrays or (len(arrays) == 1 and wrap(arrays[0], x.backend).dtype is bool_):
        return None
    order = _element_numbers(getitem(x, key))
    return ops.equal(getitem(setitem(_element_numbers(x), order, key), key), order)


def _element_numbers(x: Tensor) -> Tensor:
    """Return the numbers of the elements of x."""
    return ops.reshape(convert_to_tensor(range(x.size), "int64", backend=x.backend), x.shape)


def _value_gradient(
    g: Tensor, value: Tensor, key: object, is_last_write: Tensor | None = None
) -> Tensor:
    """Return the gradient of a written value, which may have extra leading axes of size 1."""
    read = getitem(g, key)
    if is_last_write is not None:
        read = ops.where(is_last_write, read, 0.0)
    if value.ndim <= read.ndim:
        return read
    return ops.reshape(unbroadcast(read, value.shape[value.ndim - read.ndim :]), value.shape)


@vjp_rule(ops.take)
def _(
    g: Tensor, out: Tensor, x: Tensor, indices: Tensor, axis: int | None = None
) -> tuple[Tensor, None]:
    if axis is None:
        flat = _scatter_add(ops.reshape(g, (-1,)), indices, 0, x.size)
        return ops.reshape(flat, x.shape), None
    axis = axis % x.ndim
    shape = (*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
    return _scatter_add(ops.reshape(g, shape), indices, axis, x.shape[axis]), None


def _scatter_add(g: Tensor, indices: Tensor, axis: int, length: int) -> Tensor:
    """Return zeros with `length` elements along an axis, and g added at the indices."""
    if length == 0:
        return ops.zeros_like(g)
    positions = ops.reshape(_non_negative(indices, length), (-1,))
    if axis == 0:
        return ops.segment_sum(g, positions, length)
    return ops.moveaxis(ops.segment_sum(ops.moveaxis(g, axis, 0), positions, length), 0, axis)


def _non_negative(indices: Tensor, length: int) -> Tensor:
    positions = ops.astype(indices, "int64")
    return ops.where(positions < 0, positions + length, positions)


@vjp_rule(ops.take_along_axis)
def _(g: Tensor, out: Tensor, x: Tensor, indices: Tensor, axis: int = -1) -> tuple[Tensor, None]:
    axis = axis % x.ndim
    shape = tuple([x.shape[at] if at == axis else one for at, one in enumerate(g.shape)])
    positions = _flat_indices(_non_negative(indices, shape[axis]), shape, axis)
    positions = ops.reshape(ops.broadcast_to(positions, g.shape), (-1,))
    summed = ops.segment_sum(ops.reshape(g, (-1,)), positions, math.prod(shape))
    return ops.reshape(summed, shape), None


def _flat_indices(positions: Tensor, shape: tuple[int, ...], axis: int) -> Tensor:
    """Return indices along one axis as indices into the flattened tensor."""
    step = math.prod(shape[axis + 1 :])
    flat = positions * step
    for at in range(len(shape)):
        if at != axis:
            step = math.prod(shape[at + 1 :])
            offsets = convert_to_tensor(range(shape[at]), "int64", backend=positions.backend) * step
            flat = flat + ops.reshape(offsets, (shape[at],) + (1,) * (len(shape) - 1 - at))
    return flat


def _put_gradient(g: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Return the gradient of written values: zero where a later one has the same index."""
    read = ops.take_along_axis(g, indices, axis)
    order = _element_numbers(read)
    written = ops.put_along_axis(_element_numbers(g), indices, order, axis)
    return ops.where(ops.equal(ops.take_along_axis(written, indices, axis), order), read, 0.0)


vjps(
    ops.put_along_axis,
    x=lambda g, out, x, indices, values, axis=-1: ops.put_along_axis(
        g, indices, ops.zeros_like(values), axis
    ),
    values=lambda g, out, x, indices, values, axis=-1: _put_gradient(g, indices, axis),
)


vjps(
    ops.dynamic_slice,
    x=lambda g, out, x, starts, sizes: ops.dynamic_update_slice(ops.zeros_like(x), g, starts),
)
vjps(
    ops.dynamic_update_slice,
    x=lambda g, out, x, update, starts: ops.dynamic_update_slice(g, ops.zeros_like(update), starts),
    update=lambda g, out, x, update, starts: ops.dynamic_slice(g, starts, update.shape),
)
