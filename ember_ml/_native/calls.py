"""Calls of kernels: arrays are passed as pointers, sizes and strides as integers."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from ember_ml import _native

_SMALL = 1 << 15  # elements per thread, below which starting a thread does not pay off


def call(
    library: ctypes.CDLL, name: str, pointers: Sequence[int | None], numbers: Sequence[int]
) -> None:
    """Call a kernel `void name(void *const *arrays, const int64_t *numbers)`.

    Args:
        library: The loaded library.
        name: Name of the kernel, with the suffix of its dtype.
        pointers: Addresses of the arrays; None for an array that is not given.
        numbers: Sizes, strides and options.
    """
    arrays = (ctypes.c_void_p * len(pointers))(*pointers)
    getattr(library, name)(arrays, (ctypes.c_int64 * len(numbers))(*numbers))


def threads_for(elements: int, limit: int | None = None) -> int:
    """Return the number of threads for work on some elements.

    Args:
        elements: Number of elements that the kernel reads or writes.
        limit: Largest number of threads. Default: `ember_ml._native.threads`.
    """
    most = _native.threads if limit is None else limit
    return max(1, min(most, elements // _SMALL))


def flat_stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """Return the stride of some axes as one axis; None if a copy is needed.

    Args:
        shape: Lengths of the axes.
        strides: Strides of the axes.
    """
    flat: int | None = None
    expected = 0
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length == 1:
            continue
        if flat is None:
            flat = stride
        elif stride != expected:
            return None
        expected = stride * length
    return 0 if flat is None else flat
