"""Counts of torch's allocators: `ember_ml.backend.interface.Memory`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch.autograd.profiler import record_function

from ember_ml._native import keep_freed_memory as keep_freed
from ember_ml.backend.interface import MemoryChange, MemoryRecorder

if TYPE_CHECKING:
    from ember_ml.backend.interface import Memory
    from ember_ml.backend.torch import memory

    _checked: Memory = memory

__all__ = ["SEES_ALLOCATIONS", "SEES_MARKS", "keep_freed", "record"]

SEES_MARKS = True
SEES_ALLOCATIONS = True
_PREFIX = "ember mark: "
_RESTART = "ember restart"


class _Allocations:
    """Record of every allocation on the CPU, by torch's profiler."""

    def __init__(self) -> None:
        self.changes: list[MemoryChange] = []

    def mark(self, name: str) -> None:
        """Mark a place in the recording."""
        with record_function(_PREFIX + name):
            pass

    def restart(self) -> None:
        """Forget the changes so far."""
        with record_function(_RESTART):
            pass

    def read(self, threads: list[list[torch.autograd.ProfilerEvent]]) -> None:
        """Add the changes of the profiler's events."""
        for event in (event for events in threads for event in events):
            if event.kind() == "memory_alloc" and event.cpu_memory_usage():
                size = event.cpu_memory_usage()
                self.changes.append(MemoryChange("", size, max(size, 0)))
            elif event.kind() == "push" and event.name().startswith(_PREFIX):
                self.changes.append(MemoryChange(event.name().removeprefix(_PREFIX), 0, 0))
            elif event.kind() == "push" and event.name() == _RESTART:
                self.changes = []


class _Counters:
    """Record of the memory of a CUDA device between marks, by the counters of its allocator."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget the changes so far."""
        self.changes: list[MemoryChange] = []
        torch.cuda.reset_peak_memory_stats()
        self._start = torch.cuda.memory_allocated()

    def mark(self, name: str) -> None:
        """Mark a place in the recording."""
        now, peak = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
        self.changes.append(MemoryChange(name, now - self._start, peak - self._start))
        torch.cuda.reset_peak_memory_stats()
        self._start = now


@contextlib.contextmanager
def record() -> Iterator[MemoryRecorder]:
    """Record the memory in use in this thread: of CUDA if there is a device, or of the CPU."""
    if torch.cuda.is_available():
        counters = _Counters()
        yield counters
        counters.mark("")
        return
    recorder = _Allocations()
    torch.autograd._enable_profiler_legacy(
        torch.autograd.ProfilerConfig(
            torch.autograd.ProfilerState.CPU,
            False,  # shapes
            True,  # memory
            False,  # stacks
            False,  # FLOPs
            False,  # modules
            torch._C._profiler._ExperimentalConfig(),
        )
    )
    try:
        yield recorder
    finally:
        events = torch.autograd._disable_profiler_legacy()
    recorder.read(events)
