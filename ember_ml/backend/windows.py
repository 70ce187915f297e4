"""Windows of convolutions: checks shared by the backends."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence


def check_steps(stride: Sequence[int], dilation: Sequence[int], groups: int) -> None:
    """Raise unless all are positive; native code would divide by zero or read backward."""
    if groups < 1 or min(stride) < 1 or min(dilation) < 1:
        raise ValueError(
            f"stride={stride}, dilation={dilation} and groups={groups} must be at least 1"
        )


@functools.cache
def _memory() -> int:
    """Return the size of the physical memory in bytes; a large number where it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**62


def check_memory(shape: Sequence[int], itemsize: int) -> None:
    """Raise if an array cannot fit into memory, for frameworks that crash if they cannot allocate.

    Args:
        shape: Shape of the array.
        itemsize: Bytes of an element.
    """
    size = math.prod(shape) * itemsize
    if size > _memory():
        raise MemoryError(f"a result of shape {tuple(shape)} needs {size} bytes")
