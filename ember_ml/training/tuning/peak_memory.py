"""Measurement of the memory that a computation needs."""

from __future__ import annotations

import os
import threading
import tracemalloc
from types import TracebackType
from typing import Self

from ember_ml import ops

INTERVAL = 0.001
"""Seconds between two samples."""


class PeakMemory:
    """Measures the growth of the memory in use within a `with` block.

    It samples the bytes that the backend reports as allocated. For backends that report none, it
    takes the larger of what Python's allocator traces, which includes NumPy's arrays, and of the
    growth of the process on systems with /proc.

    Args:
        backend: Name of the backend.

    Attributes:
        bytes: Largest growth in bytes.
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.bytes = 0

    def __enter__(self) -> Self:
        self._counts = "allocated" in ops.memory_usage(self.backend)
        self._was_tracing = tracemalloc.is_tracing()
        if not self._counts:
            if not self._was_tracing:
                tracemalloc.start()
            tracemalloc.reset_peak()
            self._traced = tracemalloc.get_traced_memory()[0]
        self._start, self._end = self._current(), threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()
        self._update()
        if not self._counts:
            self.bytes = max(self.bytes, tracemalloc.get_traced_memory()[1] - self._traced)
            if not self._was_tracing:
                tracemalloc.stop()

    def _sample(self) -> None:
        while not self._end.wait(INTERVAL):
            self._update()

    def _update(self) -> None:
        self.bytes = max(self.bytes, self._current() - self._start)

    def _current(self) -> int:
        if self._counts:
            return ops.memory_usage(self.backend)["allocated"]
        try:
            with open("/proc/self/statm", "rb") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 0
