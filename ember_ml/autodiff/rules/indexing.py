"""Elements chosen by position or by condition."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml.autodiff.rules import by_operand, rule
from ember_ml.autodiff.sweep import unbroadcast
from ember_ml.ops.indexing import additem, getitem, setitem

_BASIC = (int, slice, type(None), type(Ellipsis))


@rule(getitem)
def _(g: Any, out: Any, x: Any, key: Any) -> Any:
    parts = key if type(key) is tuple else (key,)
    for part in parts:
        if type(part) not in _BASIC:
            return additem(ops.zeros_like(x), g, key)
    return setitem(ops.zeros_like(x), g, key)  # names no place twice


by_operand(
    setitem,
    x=lambda g, out, x, value, key: setitem(g, ops.zeros_like(value), key),
    value=lambda g, out, x, value, key: _of_value(g, value, key),
)
by_operand(
    additem,
    x=lambda g, out, x, value, key: g,
    value=lambda g, out, x, value, key: _of_value(g, value, key),
)
by_operand(
    ops.where,
    x=lambda g, out, condition, x=None, y=None: ops.where(condition, g, 0.0),
    y=lambda g, out, condition, x=None, y=None: ops.where(condition, 0.0, g),
)


def _of_value(g: Any, value: Any, key: Any) -> Any:
    """What was written, whose leading axes of length 1 may have been too many."""
    read = getitem(g, key)
    if value.ndim <= read.ndim:
        return read
    return ops.reshape(unbroadcast(read, value.shape[value.ndim - read.ndim :]), value.shape)


@rule(ops.take)
def _(g: Any, out: Any, x: Any, indices: Any, axis: int | None = None) -> Any:
    if axis is None:
        flat = _put_back(ops.reshape(g, (-1,)), indices, 0, x.size)
        return ops.reshape(flat, x.shape), None
    axis = axis % x.ndim
    shape = (*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
    return _put_back(ops.reshape(g, shape), indices, axis, x.shape[axis]), None


def _put_back(g: Any, indices: Any, axis: int, length: int) -> Any:
    """Zeros of `length` along an axis, with g added at the indices."""
    if length == 0:
        return ops.zeros_like(g)
    places = ops.reshape(_from_front(indices, length), (-1,))
    if axis == 0:
        return ops.segment_sum(g, places, length)
    return ops.moveaxis(ops.segment_sum(ops.moveaxis(g, axis, 0), places, length), 0, axis)


def _from_front(indices: Any, length: int) -> Any:
    places = ops.astype(indices, "int64")
    return ops.where(places < 0, places + length, places)


@rule(ops.take_along_axis)
def _(g: Any, out: Any, x: Any, indices: Any, axis: int = -1) -> Any:
    axis = axis % x.ndim
    shape = tuple([x.shape[at] if at == axis else one for at, one in enumerate(g.shape)])
    places = _flat_places(_from_front(indices, shape[axis]), shape, axis)
    places = ops.reshape(ops.broadcast_to(places, g.shape), (-1,))
    summed = ops.segment_sum(ops.reshape(g, (-1,)), places, math.prod(shape))
    return ops.reshape(summed, shape), None


def _flat_places(places: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Indices along one axis as indices into the flattened tensor."""
    step = math.prod(shape[axis + 1 :])
    flat = places * step
    for at in range(len(shape)):
        if at != axis:
            step = math.prod(shape[at + 1 :])
            own = convert_to_tensor(range(shape[at]), "int64", backend=places.backend) * step
            flat = flat + ops.reshape(own, (shape[at],) + (1,) * (len(shape) - 1 - at))
    return flat


by_operand(
    ops.put_along_axis,
    x=lambda g, out, x, indices, values, axis=-1: ops.put_along_axis(
        g, indices, ops.zeros_like(values), axis
    ),
    values=lambda g, out, x, indices, values, axis=-1: ops.take_along_axis(g, indices, axis),
)
