"""Exclusive use of a model's variables by one thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence

from ember_ml._core import runtime
from ember_ml._core.errors import ConcurrentUseError
from ember_ml.nn.parameter import Variable


class Owners:
    """Threads that use variables exclusively."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting = 0
        self._threads: dict[int, int] = {}

    def acquire(self, ids: frozenset[int]) -> frozenset[int]:
        """Acquire the variables, and return those that this thread did not hold already."""
        me = threading.get_ident()
        with self._lock:
            while any(self._threads[at] != me for at in self._threads.keys() & ids):
                if me in self._threads.values():  # the other thread may wait for this one
                    raise ConcurrentUseError(
                        "the parameters are in use by another thread, which computes gradients or "
                        "evaluates with other weights; give each thread its own copy of the model"
                    )
                self._waiting += 1
                try:
                    self._changed.wait()
                finally:
                    self._waiting -= 1
            new = ids - self._threads.keys()
            self._threads.update(dict.fromkeys(new, me))
            return new

    def release(self, ids: frozenset[int]) -> None:
        """Let other threads use the variables."""
        with self._lock:
            for at in ids:
                del self._threads[at]
            if self._waiting:
                self._changed.notify_all()


OWNERS = Owners()


@contextlib.contextmanager
def exclusive(variables: Sequence[Variable]) -> Iterator[None]:
    """Let one thread at a time enter blocks with the same variables.

    For blocks that replace values of variables for all threads. Another thread waits, or gets a
    `ConcurrentUseError` if it is itself inside such a block with other variables.

    Args:
        variables: Parameters and buffers.
    """
    if not variables or is_compiling(variables[0]):
        yield  # the block becomes part of a compiled program, which replaces no values
        return
    acquired = OWNERS.acquire(frozenset(map(id, variables)))
    try:
        yield
    finally:
        OWNERS.release(acquired)


def is_compiling(variable: Variable) -> bool:
    """Return whether the caller is traced by a compiler, which cannot compile locks."""
    return runtime.LOADED[variable.backend].autodiff.is_compiling()
