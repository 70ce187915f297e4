"""Access of the C kernels to NumPy arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from ember_ml import _native
from ember_ml._native.calls import SUFFIXES, pointer
from ember_ml._native.frame import Frame


def frame(*arrays: np.ndarray | None) -> Frame | None:
    """Return the access to arrays of one dtype; None if the kernels do not take them.

    Args:
        arrays: Operands of a kernel; None for a missing one.
    """
    library = _native.library
    if library is None:
        return None
    present = [x for x in arrays if x is not None]
    dtype = present[0].dtype
    suffix = SUFFIXES.get(dtype.char)
    if suffix is None:
        return None
    for x in present:
        if (x.dtype is not dtype and x.dtype != dtype) or not x.flags.aligned:
            return None
    empty = functools.partial(_empty, dtype)
    return Frame(library, suffix, pointer, _strides, _copy, empty, _linear, _native.threads)


_LINE = 64
_LARGE = 1 << 20


def _empty(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return a new array; large ones start at a cache line, where vectors do not cross lines."""
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    room = np.empty(size + _LINE, np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + size].view(dtype).reshape(shape)


def _strides(x: np.ndarray) -> Sequence[int]:
    itemsize = x.itemsize
    return [stride // itemsize for stride in x.strides]


def _copy(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(x, shape))


def _linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    out = x @ weight.T
    return out if bias is None else np.add(out, bias, out)
