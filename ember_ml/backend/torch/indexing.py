"""Reading and writing an index of a torch tensor, with NumPy's semantics."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from ember_ml._core.errors import ShapeError
from ember_ml.backend.torch.nesting import is_tracked

_SERIAL = 1 << 15  # torch writes at most this many elements in order

_NATIVE_DTYPES = (torch.int64, torch.int32, torch.bool)
"""Dtypes of index arrays that torch reads as NumPy does: uint8 is a mask, others are refused."""


class Plan(NamedTuple):
    """Split index: a basic index, then index arrays on some axes of its result.

    `at` is the position of the arrays' axes in the result.
    """

    basic: tuple[Any, ...]
    arrays: list[Any]
    axes: list[int]
    at: int


def _is_array(part: object) -> bool:
    return isinstance(part, torch.Tensor)


def _axes(part: torch.Tensor) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if _is_array(part) and part.dtype is torch.bool else 1


def _flip_negative_steps(data: torch.Tensor, parts: list[Any]) -> tuple[list[Any], list[int]]:
    """Convert slices with a negative step, which torch lacks, to flipped axes."""
    axis = 0
    out, flipped = [], []
    for position, part in enumerate(parts):
        if part is Ellipsis:
            axis = data.ndim - sum(_axes(later) for later in parts[position + 1 :])
        if isinstance(part, slice) and part.step is not None and part.step < 0:
            length = data.shape[axis]
            start, stop, step = part.indices(length)
            flipped.append(axis)
            out.append(slice(length - 1 - start, length - 1 - stop, -step))
        else:
            out.append(part)
        axis += _axes(part)
    return out, flipped


def _indices(part: torch.Tensor) -> list[Any]:
    """Convert an array in an index to integer arrays: one, or one per axis of a mask.

    This avoids that torch treats uint8 as a mask and reads the value of a 0-d array.
    """
    if part.dtype is not torch.bool:
        return [part.long()]
    if part.ndim == 0:
        return [torch.nonzero(part.reshape(1)).reshape(-1)]
    return list(torch.nonzero(part, as_tuple=True))


def _plan(ndim: int, parts: list[Any]) -> Plan:
    basic: list[Any] = []
    arrays: list[Any] = []
    axes: list[int] = []
    axis = 0  # axis of the result of the basic index
    advanced = []  # positions of integers and arrays in the index
    starts = []  # axis of each of them
    for position, part in enumerate(parts):
        if type(part) is int or _is_array(part):
            advanced.append(position)
            starts.append(axis)
        if _is_array(part):
            indices = _indices(part)
            basic.extend(
                [None]
                if part.ndim == 0 and part.dtype is torch.bool
                else [slice(None)] * len(indices)
            )
            arrays.extend(indices)
            axes.extend(range(axis, axis + len(indices)))
            axis += len(indices)
            continue
        basic.append(part)
        if part is Ellipsis:
            axis += ndim - sum(map(_axes, parts))
        elif type(part) is not int:
            axis += 1
    together = advanced == list(range(advanced[0], advanced[-1] + 1))
    return Plan(tuple(basic), arrays, axes, starts[0] if together else 0)


def _lead(view: Any, plan: Plan) -> torch.Tensor:
    """Move the axes that arrays index to the front."""
    rest = [axis for axis in range(view.ndim) if axis not in plan.axes]
    return view.permute(plan.axes + rest)


def _spread(arrays: list[Any]) -> tuple[tuple[Any, ...], int]:
    """Broadcast the index arrays to at least one axis; return them and their number of axes."""
    try:
        arrays = list(torch.broadcast_tensors(*arrays))
    except RuntimeError:
        shapes = ", ".join(str(tuple(array.shape)) for array in arrays)
        raise IndexError(f"index arrays of shapes {shapes} do not broadcast") from None
    ndim = arrays[0].ndim
    return tuple(array.reshape(1) if ndim == 0 else array for array in arrays), ndim


def _parts(key: object) -> list[Any]:
    return list(key) if isinstance(key, tuple) else [key]


def _is_native(parts: Any) -> bool:
    """Return whether torch reads the index as NumPy does: at most one array and no integers."""
    arrays = integers = 0
    for part in parts:
        kind = type(part)
        if kind is slice:
            if part.step is not None and part.step < 0:
                return False
        elif kind is int:
            integers += 1
        elif isinstance(part, torch.Tensor):
            if part.ndim == 0 or part.dtype not in _NATIVE_DTYPES:
                return False
            arrays += 1
    return arrays == 0 or (arrays == 1 and integers == 0)


def getitem(data: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Return the elements at an index."""
    if _is_native(key if type(key) is tuple else (key,)):
        return data[key]
    parts, flipped = _flip_negative_steps(data, _parts(key))
    data = data.flip(flipped) if flipped else data
    if not any(map(_is_array, parts)):
        return data[tuple(parts)]
    plan = _plan(data.ndim, parts)
    arrays, ndim = _spread(plan.arrays)
    out = _lead(data[plan.basic], plan)[arrays]
    if ndim == 0:
        return out[0]
    if plan.at == 0:
        return out
    return out.movedim(tuple(range(ndim)), tuple(range(plan.at, plan.at + ndim)))


def _fit(value: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Broadcast the value to the shape it replaces, ignoring extra leading axes of length 1."""
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value[0]
    try:
        return value.broadcast_to(shape)
    except RuntimeError:
        raise ShapeError(
            f"a value of shape {tuple(value.shape)} does not fit the index's shape {tuple(shape)}"
        ) from None


def _may_repeat(arrays: tuple[Any, ...], parts: list[Any], value: torch.Tensor) -> bool:
    """Return whether a repeated index could matter: to gradients, or to the order of writing."""
    if arrays[0].numel() < 2:
        return False
    masks = [part for part in parts if _is_array(part) and part.dtype is torch.bool]
    if masks and len(arrays) == masks[0].ndim:
        return False  # a single mask
    in_order = value.device.type == "cpu" and arrays[0].ndim == 1 and value.numel() < _SERIAL
    return not in_order or is_tracked(value)


def _last_values(
    shape: tuple[int, ...], arrays: tuple[Any, ...], value: torch.Tensor
) -> torch.Tensor:
    """Return the values with those at repeated indices replaced by the last one, as a constant.

    Every write of an element then has the same value, and the gradient goes to the last one.
    """
    flat = torch.zeros_like(arrays[0])
    for index, length in zip(arrays, shape, strict=False):
        index = torch.where(index < 0, index + length, index)
        flat = flat * length + index.clamp(0, max(length - 1, 0))
    flat = flat.reshape(-1)
    order = torch.arange(len(flat), device=flat.device)
    start = order.new_full((math.prod(shape[: len(arrays)]),), -1)
    last = start.scatter_reduce(0, flat, order.expand_as(flat), "amax")[flat]
    values = value.reshape(len(flat), *value.shape[arrays[0].ndim :])
    is_last = (last == order).reshape(-1, *(1,) * (values.ndim - 1))
    return torch.where(is_last, values, values.detach()[last]).reshape(value.shape)


def _write(
    data: torch.Tensor, key: torch.Tensor, value: torch.Tensor, accumulate: bool
) -> torch.Tensor:
    parts, flipped = _flip_negative_steps(data, _parts(key))
    out = data.flip(flipped) if flipped else data.clone()
    if not any(map(_is_array, parts)):
        view = out[tuple(parts)]
        value = _fit(value, view.shape)
        view.copy_(view + value if accumulate else value)
    else:
        plan = _plan(data.ndim, parts)
        arrays, ndim = _spread(plan.arrays)
        view = _lead(out[plan.basic], plan)
        rest = list(view.shape[len(plan.axes) :])
        block = list(arrays[0].shape) if ndim else []
        value = _fit(value, (*rest[: plan.at], *block, *rest[plan.at :]))
        if ndim and plan.at:
            value = value.movedim(tuple(range(plan.at, plan.at + ndim)), tuple(range(ndim)))
        if not accumulate and _may_repeat(arrays, parts, value):
            value = _last_values(view.shape, arrays, value)
        view.index_put_(arrays, value, accumulate=accumulate)
    return out.flip(flipped) if flipped else out


def setitem(data: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return a copy with new values at an index."""
    if _is_array(key) and key.dtype is torch.bool and value.ndim == 0:
        return torch.where(key.reshape(key.shape + (1,) * (data.ndim - key.ndim)), value, data)
    return _write(data, key, value, accumulate=False)


def additem(data: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return a copy with a value added at an index; repeated indices accumulate."""
    return _write(data, key, value, accumulate=True)
