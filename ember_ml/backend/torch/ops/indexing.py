"""Selection of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ember_ml._core.errors import IndexOutOfRangeError, ShapeError
from ember_ml.backend.torch import indexing
from ember_ml.backend.torch.indexing import getitem as getitem
from ember_ml.backend.torch.nesting import is_tracked


def setitem(x: torch.Tensor, value: torch.Tensor, key: Any) -> torch.Tensor:
    return indexing.setitem(x, key, value)


def additem(x: torch.Tensor, value: torch.Tensor, key: Any) -> torch.Tensor:
    return indexing.additem(x, key, value)


def take(x: torch.Tensor, indices: torch.Tensor, axis: int | None = None) -> torch.Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    if axis < -x.ndim:
        raise IndexError(f"axis={axis} is out of range")
    if indices.ndim == 1 and x.ndim:  # a faster gradient than that of x[indices]
        places = indices.long()
        try:
            return x.index_select(axis, torch.where(places < 0, places + x.shape[axis], places))
        except (IndexError, RuntimeError):
            return x[(*(slice(None),) * (axis % x.ndim), places)]  # names the index and the size
    before = (slice(None),) * (axis + x.ndim if axis < 0 else axis)
    if indices.ndim:
        return x[(*before, indices.long())]
    return x[(*before, indices.long().reshape(1))].squeeze(
        axis
    )  # torch would read the value of a 0-d index


def _from_front(op: str, x: torch.Tensor, indices: torch.Tensor, axis: int) -> torch.Tensor:
    if x.ndim != indices.ndim or x.ndim == 0:
        raise ShapeError(
            f"{op}: x {tuple(x.shape)} and indices {tuple(indices.shape)} must have the same "
            "number of axes, at least 1"
        )
    indices = indices.long()
    return torch.where(indices < 0, indices + x.shape[axis], indices)


def _with(shape: tuple[int, ...], axis: int, length: int) -> torch.Tensor:
    out = list(shape)
    out[axis] = length
    return out


def take_along_axis(x: torch.Tensor, indices: torch.Tensor, axis: int = -1) -> torch.Tensor:
    indices = _from_front("take_along_axis", x, indices, axis)
    common = torch.broadcast_shapes(_with(x.shape, axis, 1), _with(indices.shape, axis, 1))
    x = x.expand(_with(common, axis, x.shape[axis]))
    indices = indices.expand(_with(common, axis, indices.shape[axis]))
    try:
        return torch.gather(x, axis, indices)  # take_along_dim would wrap indices around
    except RuntimeError as error:
        raise _explained(error) from error


def put_along_axis(
    x: torch.Tensor, indices: torch.Tensor, values: torch.Tensor, axis: int = -1
) -> torch.Tensor:
    indices = _from_front("put_along_axis", x, indices, axis)
    shape = _with(x.shape, axis, indices.shape[axis])
    indices = indices.broadcast_to(shape)
    values = values.broadcast_to(shape)
    try:
        if x.device.type != "cpu" or is_tracked(values):
            values = _last_values(x, indices, values, axis)
        return x.scatter(axis, indices, values)
    except RuntimeError as error:
        raise _explained(error) from error


def _last_values(
    x: torch.Tensor, indices: torch.Tensor, values: torch.Tensor, axis: int
) -> torch.Tensor:
    """Return the values with those at repeated indices replaced by the last one, as a constant."""
    order = torch.arange(indices.shape[axis], device=x.device)
    order = order.reshape(-1, *(1,) * (x.ndim - 1 - axis % x.ndim)).broadcast_to(indices.shape)
    start = torch.full_like(x, -1, dtype=order.dtype)
    last = start.scatter_reduce(axis, indices, order, "amax").gather(axis, indices)
    return torch.where(last == order, values, values.detach().gather(axis, last))


def _explained(error: RuntimeError) -> Exception:
    """Convert torch's RuntimeError for an index out of range."""
    return IndexOutOfRangeError(str(error)) if "out of bounds" in str(error) else error


def where(condition: torch.Tensor, x: torch.Tensor | None, y: torch.Tensor | None) -> torch.Tensor:
    return torch.where(condition if condition.dtype is torch.bool else condition != 0, x, y)


def nonzero(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    if x.ndim == 0:
        raise ShapeError("nonzero: x must have at least one axis; got a 0-d tensor")
    return torch.nonzero(x, as_tuple=True)


def argwhere(x: torch.Tensor) -> torch.Tensor:
    return torch.argwhere(x)


def _check_within(op: str, indices: torch.Tensor, length: int, shape: Sequence[int]) -> None:
    """Raise if an index is out of range; `gather` checks this on the CPU and under vmap."""
    if torch.compiler.is_compiling() or indices.device.type != "cpu":
        return
    try:
        torch.gather(torch.zeros(1).expand(length), 0, indices.long().reshape(-1))
    except RuntimeError as error:
        raise IndexOutOfRangeError(f"{op} into the shape {tuple(shape)}: {error}") from error


def unravel_index(indices: torch.Tensor, shape: Sequence[int]) -> tuple[torch.Tensor, ...]:
    _check_within("unravel_index", indices, math.prod(shape), shape)
    return torch.unravel_index(indices.long(), tuple(shape))


def ravel_multi_index(multi_index: Sequence[torch.Tensor], shape: Sequence[int]) -> torch.Tensor:
    out = 0
    for part, length in zip(multi_index, shape, strict=True):
        _check_within("ravel_multi_index", part, length, shape)
        out = out * length + part.long()
    return out
