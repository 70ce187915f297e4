"""Reading and writing an index of an MLX array."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np


def _is_mask(part: Any) -> bool:
    return isinstance(part, mx.array) and part.dtype == mx.bool_


def _without_masks(data: Any, key: Any) -> tuple[Any, Any]:
    """Masks, whose result depends on values, become integer indices found on the host."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if not any(map(_is_mask, parts)):
        return data, key
    out: list[Any] = []
    axis = 0
    shape = list(data.shape)
    for position, part in enumerate(parts):
        if _is_mask(part):
            if part.ndim == 0:
                shape.insert(axis, 1)
                out.append(mx.array(np.zeros(int(part.item()), np.int32)))
                axis += 1
            else:
                _check_mask(part, shape, axis)
                out.extend(mx.array(found.astype(np.int32)) for found in np.nonzero(np.array(part)))
                axis += part.ndim
            continue
        if part is Ellipsis:
            axis = len(shape) - sum(_axes(later) for later in parts[position + 1 :])
        elif part is not None:
            axis += 1
        out.append(part)
    return data.reshape(shape), tuple(out)


def _axes(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if _is_mask(part) else 1


def _check_mask(mask: Any, shape: list[int], axis: int) -> None:
    if list(mask.shape) != shape[axis : axis + mask.ndim]:
        raise IndexError(
            f"a mask of shape {mask.shape} does not fit the axes of shape {tuple(shape)}"
        )


def getitem(data: Any, key: Any) -> Any:
    """Read an index."""
    data, key = _without_masks(data, key)
    return data[key]


def setitem(data: Any, key: Any, value: Any) -> Any:
    """A copy with an index written."""
    shape = data.shape
    data, key = _without_masks(data, key)
    out = mx.array(data)
    out[key] = value
    return out.reshape(shape)
