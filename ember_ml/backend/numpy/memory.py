"""Counts of NumPy's allocator, which reports to tracemalloc: `interface.Memory`."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ember_ml._native import keep_freed_memory as keep_freed
from ember_ml.backend.interface import MemoryChange, MemoryRecorder

if TYPE_CHECKING:
    from ember_ml.backend.interface import Memory
    from ember_ml.backend.numpy import memory

    _checked: Memory = memory

__all__ = ["SEES_ALLOCATIONS", "SEES_MARKS", "keep_freed", "record"]

SEES_MARKS = True
SEES_ALLOCATIONS = False


class _Traced:
    """Record of the traced memory between marks."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget the changes so far."""
        self.changes: list[MemoryChange] = []
        tracemalloc.reset_peak()
        self._start = tracemalloc.get_traced_memory()[0]

    def mark(self, name: str) -> None:
        """Mark a place in the recording."""
        now, peak = tracemalloc.get_traced_memory()
        self.changes.append(MemoryChange(name, now - self._start, peak - self._start))
        tracemalloc.reset_peak()
        self._start = now


@contextlib.contextmanager
def record() -> Iterator[MemoryRecorder]:
    """Record the memory that Python and NumPy allocate."""
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        recorder = _Traced()
        yield recorder
        recorder.mark("")
    finally:
        if not was_tracing:
            tracemalloc.stop()
