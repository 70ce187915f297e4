"""Which tapes are open, and the way by which a call comes to them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
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


class _Thread(threading.local):
    """The open tapes of a thread."""

    tapes: tuple[Any, ...] = ()


_thread = _Thread()
_lock = threading.Lock()


def current() -> tuple[Any, ...]:
    """What `tapes` gives, while there are any in some thread."""
    return _thread.tapes


def tapes() -> tuple[Any, ...]:
    """The open tapes of this thread, the outermost first."""
    return current() if OPEN else ()


def push(tape: Recorder, position: int | None = None) -> None:
    """Open a tape, as the innermost or at a position among those that are open."""
    with _lock:
        OPEN.append(tape)
    mine = current()
    at = len(mine) if position is None else position
    _thread.tapes = (*mine[:at], tape, *mine[at:])


def remove(tape: Recorder) -> int:
    """Close a tape; the position that it had."""
    mine = current()
    _thread.tapes = tuple([other for other in mine if other is not tape])
    with _lock:
        OPEN[:] = [other for other in OPEN if other is not tape]
    return mine.index(tape) if tape in mine else len(mine)


@contextlib.contextmanager
def only(*chosen: Recorder) -> Iterator[None]:
    """Record on these tapes alone within the block; on none, if none is named."""
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
