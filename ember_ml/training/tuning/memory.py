"""Recognition of errors that mean that the memory is exhausted."""

from __future__ import annotations

_WORDS = (
    "out of memory",  # torch on CUDA and MPS
    "can't allocate memory",  # torch on the CPU
    "unable to allocate",  # NumPy and MLX
    "attempting to allocate",  # MLX, above the largest buffer
    "failed to allocate",
)


class MemoryLimitError(MemoryError):
    """Raised if a memory limit that the user set is exceeded."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of any backend means that the memory is exhausted.

    Args:
        error: The error.
    """
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, (RuntimeError, ValueError)) and any(word in text for word in _WORDS)
