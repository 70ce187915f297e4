"""Calls of the C kernels: their signatures, pointers to NumPy arrays, numbers of threads.

A kernel takes pointers (`p`), sizes and flags (`i`, int64) and numbers (`r`, double), and exists
for float32 and float64. The caller passes C-contiguous arrays of the right dtype and shape.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from ember_ml import _native

if TYPE_CHECKING:
    import numpy as np

_TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "r": ctypes.c_double}
SUFFIXES = {"f": "f32", "d": "f64"}
"""Suffix of the functions for a NumPy dtype, by its `char`."""
GRAIN = 1 << 15
"""Least work of a thread, in operations of a few nanoseconds: a thread costs some 20 us."""


class Kernel:
    """Function of the library for float32 and float64.

    Args:
        name: Name in C without the prefix `ember_` and the suffix.
        signature: Kinds of the arguments: `p`, `i` and `r`.

    Example:
        >>> exp = Kernel("exp", "ppi")
        >>> exp("f32", pointer(x), pointer(y), x.size)
    """

    __slots__ = ("argtypes", "names")

    def __init__(self, name: str, signature: str) -> None:
        self.names = {suffix: f"ember_{name}_{suffix}" for suffix in SUFFIXES.values()}
        self.argtypes = [_TYPES[kind] for kind in signature]

    def __call__(self, suffix: str, *arguments: Any) -> None:
        """Call the function of a dtype; the library must be loaded."""
        function = getattr(_native.library, self.names[suffix])
        if function.argtypes is None:
            function.argtypes, function.restype = self.argtypes, None
        function(*arguments)


def pointer(array: np.ndarray) -> int:
    """Return the address of a C-contiguous array, which the caller keeps alive."""
    try:  # a third of the time of array.ctypes.data; not for empty and read-only arrays
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError):
        return array.ctypes.data


def threads_for(work: int, most: int | None = None) -> int:
    """Return the number of threads for a number of operations.

    Args:
        work: Number of operations.
        most: Largest number of threads. Default: `ember_ml._native.threads`.
    """
    return 1 if work < 2 * GRAIN else min(most or _native.threads, work // GRAIN)
