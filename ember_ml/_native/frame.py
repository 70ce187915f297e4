"""Access of the kernels to the arrays of a framework."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Frame(NamedTuple):
    """What a call of a kernel needs to know of a framework's arrays of one dtype.

    Attributes:
        library: The loaded library.
        itemsize: Size of an element in bytes: 4 or 8.
        pointer: Function that returns the address of an array.
        strides: Function that returns the strides of an array, in elements.
        copy: Function of an array and a shape that returns a contiguous array of this shape.
        empty: Function that returns a new contiguous array of a shape.
        threads: Largest number of threads.
    """

    library: ctypes.CDLL
    itemsize: int
    pointer: Callable[[Any], int]
    strides: Callable[[Any], Sequence[int]]
    copy: Callable[[Any, tuple[int, ...]], Any]
    empty: Callable[[tuple[int, ...]], Any]
    threads: int

    def call(self, name: str, pointers: Sequence[int | None], numbers: Sequence[int]) -> None:
        """Call the kernel of this name for the dtype of the arrays.

        Args:
            name: Name without the suffix of the dtype.
            pointers: Addresses of the arrays; None for an array that is not given.
            numbers: Sizes, strides and options.
        """
        suffix = "_f32" if self.itemsize == 4 else "_f64"
        arrays = (ctypes.c_void_p * len(pointers))(*pointers)
        getattr(self.library, name + suffix)(arrays, (ctypes.c_int64 * len(numbers))(*numbers))
