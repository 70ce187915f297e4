"""Which tapes are open, and the way by which a call comes to them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, Protocol


class Recorder(Protocol):
    """What a tape is to an op."""

    quick: Any
    """Where the usual call can be written at once, if this is the only tape; else None."""

    def call(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tapes: tuple[Any, ...]
    ) -> Any:
        """Compute the op, and write it on those of the tapes that track an operand."""


OPEN: list[Recorder] = []
"""The open tapes of all threads. An op looks for its own thread's only while there are some."""

_mine: ContextVar[tuple[Any, ...]] = ContextVar("ember_ml_tapes", default=())
_lock = threading.Lock()


def current() -> tuple[Any, ...]:
    """What `tapes` gives, while there are any in some thread."""
    return _mine.get()


def tapes() -> tuple[Any, ...]:
    """The open tapes of this thread or task, the outermost first."""
    return current() if OPEN else ()


def push(tape: Recorder) -> None:
    """Open a tape."""
    with _lock:
        OPEN.append(tape)
    _mine.set((*_mine.get(), tape))


def remove(tape: Recorder) -> None:
    """Close a tape."""
    _mine.set(tuple(other for other in _mine.get() if other is not tape))
    _drop(tape)


def _drop(tape: Recorder) -> None:
    with _lock:
        OPEN[:] = [other for other in OPEN if other is not tape]


@contextlib.contextmanager
def only(*chosen: Recorder) -> Iterator[None]:
    """Record on these tapes alone within the block; on none, if none is named."""
    before = _mine.get()
    with _lock:
        OPEN.extend(chosen)
    _mine.set(chosen)
    try:
        yield
    finally:
        _mine.set(before)
        for tape in chosen:
            _drop(tape)
