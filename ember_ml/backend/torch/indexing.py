"""Reading and writing an index of a torch tensor."""

from __future__ import annotations

from typing import Any

import torch


def _split_negative_steps(data: Any, key: Any) -> tuple[Any, Any, list[int]]:
    """Turn slices with a negative step, which torch lacks, into flipped axes and positive steps."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if not any(
        isinstance(part, slice) and part.step is not None and part.step < 0 for part in parts
    ):
        return data, key, []
    axis = 0
    flipped = []
    for position, part in enumerate(parts):
        if part is None:
            continue
        if part is Ellipsis:
            axis = data.ndim - sum(_axes(later) for later in parts[position + 1 :])
            continue
        if isinstance(part, slice) and part.step is not None and part.step < 0:
            length = data.shape[axis]
            start, stop, step = part.indices(length)
            parts[position] = slice(length - 1 - start, length - 1 - stop, -step)
            flipped.append(axis)
        axis += _axes(part)
    return data.flip(flipped), tuple(parts), flipped


def _axes(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, torch.Tensor) and part.dtype is torch.bool else 1


def _long(part: Any) -> Any:
    """Torch takes uint8 indices for masks, and few of the other integer types."""
    if isinstance(part, torch.Tensor) and part.dtype not in (torch.bool, torch.int64):
        return part.long()
    return part


def _prepare(key: Any) -> Any:
    return tuple(map(_long, key)) if isinstance(key, tuple) else _long(key)


def getitem(data: Any, key: Any) -> Any:
    """Read an index."""
    data, key, _ = _split_negative_steps(data, key)
    return data[_prepare(key)]


def setitem(data: Any, key: Any, value: Any) -> Any:
    """A copy with an index written."""
    out, positive, flipped = _split_negative_steps(data, key)
    if not flipped:
        out = data.clone()
    out[_prepare(positive)] = value
    return out.flip(flipped) if flipped else out
