"""Access of the kernels to the arrays of a framework."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ember_ml._native.calls import threads_for


class Frame(NamedTuple):
    """Functions of a framework that kernel calls need, for arrays of one dtype.

    Attributes:
        library: The loaded library.
        suffix: Suffix of the functions for the dtype: "f32" or "f64".
        pointer: Function that returns the address of an array.
        strides: Function that returns the strides of an array, in elements.
        copy: Function of an array and a shape that returns a contiguous array of this shape.
        empty: Function that returns a new contiguous array of a shape.
        linear: Function of x, weight and bias (or None) that returns x @ weight.T + bias.
        threads: Largest number of threads.
    """

    library: ctypes.CDLL
    suffix: str
    pointer: Callable[[Any], int]
    strides: Callable[[Any], Sequence[int]]
    copy: Callable[[Any, tuple[int, ...]], Any]
    empty: Callable[[tuple[int, ...]], Any]
    linear: Callable[[Any, Any, Any], Any]
    threads: int

    def threads_for(self, work: int) -> int:
        """Return the number of threads for a number of operations."""
        return threads_for(work, self.threads)

    def rows(self, x: Any) -> tuple[Any, int, int]:
        """Return an array with contiguous rows, and its strides of batch and time.

        Args:
            x: (batch, time, features).
        """
        batch, time, inner = self.strides(x)
        if inner == 1 or x.shape[2] == 1:
            return x, batch, time
        if batch == time == inner == 0:  # a number that is broadcast, such as a gradient of a sum
            return self.copy(x[0, 0], (x.shape[2],)), 0, 0
        return self.copy(x, tuple(x.shape)), x.shape[1] * x.shape[2], x.shape[2]

    def size(self, name: str, *numbers: int) -> int:
        """Return the result of a function of sizes, such as the elements of a workspace.

        Args:
            name: Name without the suffix of the dtype.
            numbers: Arguments of the function.
        """
        function = self._function(name)
        function.restype = ctypes.c_int64
        return int(function(*map(ctypes.c_int64, numbers)))

    def _function(self, name: str) -> Any:
        return getattr(self.library, f"{name}_{self.suffix}")

    def call_arrays(self, name: str, arrays: Sequence[Any], numbers: Sequence[int]) -> None:
        """Call a kernel with arrays instead of their addresses; None for a missing array."""
        self.call(name, [None if x is None else self.pointer(x) for x in arrays], numbers)

    def call(self, name: str, pointers: Sequence[int | None], numbers: Sequence[int]) -> None:
        """Call the kernel of this name for the dtype of the arrays.

        Args:
            name: Name without the suffix of the dtype.
            pointers: Addresses of the arrays; None for a missing array.
            numbers: Sizes, strides and options.
        """
        arrays = _array_type(ctypes.c_void_p, len(pointers))(*pointers)
        self._function(name)(arrays, _array_type(ctypes.c_int64, len(numbers))(*numbers))


@functools.cache
def _array_type(kind: Any, length: int) -> Any:
    """Return the type of C arrays of a length; ctypes forgets types that are not in use."""
    return kind * length
