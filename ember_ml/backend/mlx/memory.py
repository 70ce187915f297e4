"""Counts of MLX's allocator: `ember_ml.backend.interface.Memory`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import mlx.core as mx

from ember_ml.backend.interface import MemoryChange, MemoryRecorder

if TYPE_CHECKING:
    from ember_ml.backend.interface import Memory
    from ember_ml.backend.mlx import memory

    _checked: Memory = memory

SEES_MARKS = False  # results are computed later
SEES_ALLOCATIONS = False


class _Whole:
    """Record of the memory of a whole computation."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget the changes so far."""
        self.changes: list[MemoryChange] = []
        mx.reset_peak_memory()
        self._start = mx.get_active_memory()

    def mark(self, name: str) -> None:
        """Do nothing: what was called before the mark may be computed after it."""

    def end(self) -> None:
        """Add the change of the whole computation."""
        change, peak = mx.get_active_memory() - self._start, mx.get_peak_memory() - self._start
        self.changes.append(MemoryChange("", change, max(peak, 0)))


@contextlib.contextmanager
def record() -> Iterator[MemoryRecorder]:
    """Record the memory that MLX allocates."""
    recorder = _Whole()
    yield recorder
    recorder.end()


def keep_freed() -> None:
    """Do nothing: MLX keeps freed memory."""
