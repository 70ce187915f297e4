"""Reading and writing an index of an MLX array, with NumPy's semantics.

Index arrays are not checked for range: that would wait for the device. Those that came from the
host have been checked before.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml._core.errors import IndexOutOfRangeError, ShapeError
from ember_ml._core.keys import is_plain
from ember_ml.backend.mlx.nesting import nesting

_EDGES = (int, type(None))


def read_plain(data: mx.array, key: Any) -> mx.array:
    """Return the elements at ints and slices, checked: MLX reads beyond the array."""
    kind = type(key)
    if not data.size:
        raise IndexError("the gradient of an empty array, which `getitem` avoids")
    if kind is slice:
        plain = key.step is None and type(key.start) in _EDGES and type(key.stop) in _EDGES
        if plain and data.ndim:
            return data[key]
    elif kind is int:
        shape = data.shape
        if shape and -shape[0] <= key < shape[0]:
            return data[key]
    elif is_plain(key if kind is tuple else (key,), data.shape):
        return data[key]
    raise IndexError("an index that MLX does not check")


def fixed(indices: mx.array) -> mx.array:
    """Return indices that MLX does not try to differentiate; they may come from an `argsort`."""
    return mx.stop_gradient(indices) if nesting.gradients else indices


def _is_array(part: object) -> bool:
    return isinstance(part, mx.array)


def _is_mask(part: object) -> bool:
    return isinstance(part, mx.array) and part.dtype == mx.bool_


def _is_advanced(part: object) -> bool:
    return type(part) is int or isinstance(part, mx.array)


def _axes(part: mx.array) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if _is_mask(part) else 1


def _parts(key: object) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _without_masks(data: mx.array, parts: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Convert masks, whose result depends on values, to integer indices on the host.

    For a 0-d mask, the data gets an additional axis of length 1.
    """
    if nesting.gradients:
        parts = tuple([fixed(part) if _is_array(part) else part for part in parts])
    if not any(map(_is_mask, parts)):
        return data, parts
    shape = list(data.shape)
    out: list[Any] = []
    axis = 0
    for position, part in enumerate(parts):
        if part is Ellipsis:
            axis = len(shape) - sum(map(_axes, parts[position + 1 :]))
        if not _is_mask(part):
            out.append(part)
            axis += _axes(part)
        elif part.ndim == 0:
            shape.insert(axis, 1)
            out.append(mx.array(np.flatnonzero(np.array(part))))
            axis += 1
        else:
            out.extend(mx.array(positions) for positions in np.nonzero(np.array(part)))
            axis += part.ndim
    return data.reshape(shape), tuple(out)


def _parting(data: mx.array, parts: tuple[Any, ...]) -> int | None:
    """Return the position of an empty `...` that separates arrays in NumPy, but not in MLX."""
    middle = next((place for place, part in enumerate(parts) if part is Ellipsis), None)
    if middle is None or sum(map(_axes, parts)) < data.ndim:
        return None
    sides = parts[:middle], parts[middle:]
    return middle if all(any(map(_is_advanced, side)) for side in sides) else None


def _read(data: mx.array, parts: tuple[Any, ...]) -> mx.array:
    """Read an index without masks and with at least one array."""
    arrays = [part for part in parts if _is_array(part)]
    middle = _parting(data, parts)
    if middle is None:
        try:
            return data[parts]
        except ValueError as error:
            shapes = ", ".join(str(array.shape) for array in arrays)
            raise IndexError(f"index arrays of shapes {shapes} do not broadcast") from error
    before = parts[:middle]
    widened = mx.expand_dims(data, sum(map(_axes, before)))
    axis = max(array.ndim for array in arrays) + sum(not _is_advanced(part) for part in before)
    return _read(widened, (*before, slice(None), *parts[middle + 1 :])).squeeze(axis)


def getitem(data: mx.array, key: mx.array) -> mx.array:
    """Return the elements at an index."""
    parts = _parts(key)
    if not any(map(_is_array, parts)):
        out = data[key]
        return out if data.size else mx.zeros(out.shape, data.dtype)  # its gradient would crash
    out = _read(*_without_masks(data, parts))
    if data.size:
        return out
    if out.size:
        raise IndexOutOfRangeError(f"an index into an empty axis of the shape {data.shape}")
    return mx.zeros(out.shape, data.dtype)  # MLX cannot differentiate an empty gather


def _fit(value: mx.array, shape: tuple[int, ...]) -> mx.array:
    """Broadcast the value to the shape it replaces, ignoring extra leading axes of length 1."""
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value.squeeze(0)
    try:
        return mx.broadcast_to(value, shape)
    except ValueError:
        raise ShapeError(
            f"a value of shape {value.shape} does not fit the shape {shape} of the index"
        ) from None


def batched_like(value: mx.array, current: mx.array) -> mx.array:
    """Return the value; under `mx.vmap` it gets the batch axis of the part that it replaces.

    MLX (0.32) writes a value without a batch axis to the first example only.
    """
    if not nesting.batches:
        return value
    return mx.where(mx.array(True), value, current)


def _places(data: mx.array, parts: tuple[Any, ...], value: mx.array) -> tuple[Any, Any, Any]:
    """Flatten data, index and value, where MLX interprets the index differently from NumPy."""
    if not any(map(_is_array, parts)) or (all(map(_is_array, parts)) and parts[0].ndim > 0):
        return mx.array(data), parts, value
    dtype = mx.int32 if data.size < 2**31 else mx.int64
    places = mx.arange(data.size, dtype=dtype).reshape(data.shape)
    return data.reshape(-1), getitem(places, parts).reshape(-1), value.reshape(-1)


def setitem(data: mx.array, key: mx.array, value: mx.array) -> mx.array:
    """Return a copy with new values at an index."""
    if _is_mask(key) and value.ndim == 0:
        return mx.where(key.reshape(key.shape + (1,) * (data.ndim - key.ndim)), value, data)
    wide, parts = _without_masks(data, _parts(key))
    current = getitem(wide, parts)
    value = batched_like(_fit(value, current.shape), current)
    if value.size == 0:
        return data
    if not _is_mask(key) and any(_is_array(part) and part.size > 1 for part in parts):
        places = mx.arange(wide.size).reshape(wide.shape)
        value = last_values(getitem(places, parts), wide.size, value)
    out, parts, value = _places(wide, parts, value)
    out[parts] = value
    return out.reshape(data.shape)


def last_values(places: mx.array, size: int, values: mx.array) -> mx.array:
    """Return the values with those at repeated places replaced by the last one, as a constant.

    Every write of an element then has the same value, and the gradient goes to the last one.

    Args:
        places: Flat positions that the values are written to, in the shape of the values.
        size: Number of positions.
        values: Values to write.
    """
    flat, given = fixed(places.reshape(-1)), values.reshape(-1)
    order = mx.arange(flat.size)
    last = fixed(mx.zeros(size, order.dtype).at[flat].maximum(order)[flat])
    chosen = mx.where(last == order, given, mx.stop_gradient(given)[last])
    return chosen.reshape(values.shape)


def additem(data: mx.array, key: mx.array, value: mx.array) -> mx.array:
    """Return a copy with a value added at an index; repeated indices accumulate."""
    wide, parts = _without_masks(data, _parts(key))
    current = getitem(wide, parts)
    value = batched_like(_fit(value, current.shape), current)
    if value.size == 0:
        return data
    out, parts, value = _places(wide, parts, value)
    return out.at[parts].add(value).reshape(data.shape)
