"""Check of index keys that hold no arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_EDGES = (int, type(None))


def is_plain(key: tuple[Any, ...], shape: Sequence[int]) -> bool:
    """Return whether a key holds only valid ints, slices, ... and None: the usual case.

    Args:
        key: Index key as a tuple.
        shape: Shape of the indexed tensor.
    """
    ndim = len(shape)
    axis = 0
    for position, part in enumerate(key):
        kind = type(part)
        if kind is slice:
            step = part.step
            if type(part.start) not in _EDGES or type(part.stop) not in _EDGES:
                return False
            if step is not None and (type(step) is not int or step == 0):
                return False
        elif kind is int:
            if axis >= ndim or not -shape[axis] <= part < shape[axis]:
                return False
        elif part is None:
            continue
        elif part is Ellipsis:
            later = key[position + 1 :]
            axis = ndim - sum([one is not None for one in later])
            if axis < 0 or any(one is Ellipsis for one in later):
                return False
            continue
        else:
            return False
        axis += 1
    return axis <= ndim
