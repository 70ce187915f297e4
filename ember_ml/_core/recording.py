"""Open tapes, and how a call reaches them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Protocol


class Recorder(Protocol):
    """A tape, as an op sees it."""

    quick: Any
    """Recorder of the usual calls while this is the only tape; None if there is none."""

    def call(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tapes: tuple[Any, ...]
    ) -> Any:
        """Compute the op and record it on the tapes that track an operand."""


class NestedTransform(BaseException):
    """Raised in a checkpointed function that calls a transform: it must run without checkpoint."""


OPEN: list[Recorder] = []
"""Open tapes of all threads. An op looks for those of its thread only if there are any."""


class _Thread(threading.local):
    """Open tapes of a thread."""

    tapes: tuple[Any, ...] = ()


_thread = _Thread()
_lock = threading.Lock()


def current() -> tuple[Any, ...]:
    """Return the open tapes of this thread; `tapes` without its check of `OPEN`."""
    return _thread.tapes


def tapes() -> tuple[Any, ...]:
    """Return the open tapes of this thread, the outermost first."""
    return current() if OPEN else ()


def push(tape: Recorder, position: int | None = None) -> None:
    """Open a tape in this thread.

    Args:
        tape: The tape.
        position: Its place among the open tapes. Default: the innermost.
    """
    with _lock:
        OPEN.append(tape)
    mine = current()
    at = len(mine) if position is None else position
    _thread.tapes = (*mine[:at], tape, *mine[at:])


def remove(tape: Recorder) -> int:
    """Close a tape and return the position that it had."""
    mine = current()
    _thread.tapes = tuple([other for other in mine if other is not tape])
    with _lock:
        OPEN[:] = [other for other in OPEN if other is not tape]
    return mine.index(tape) if tape in mine else len(mine)


@contextlib.contextmanager
def only(*chosen: Recorder) -> Iterator[None]:
    """Record on these tapes only within the `with` block; on none if none is given."""
    before = _thread.tapes
    _thread.tapes = ()
    for tape in chosen:
        push(tape)
    try:
        yield
    finally:
        for tape in chosen:
            remove(tape)
        _thread.tapes = before
