"""Locks on folders, which end with the process that has them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Within the block nobody else has the lock of a file; whether it could be had.

    Where the system, or the disk, knows no such locks it can always be had.
    """
    if sys.platform == "win32":
        yield True
        return
    import fcntl

    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield _taken(lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB))
    finally:
        os.close(handle)


def _taken(lock: Callable[[], None]) -> bool:
    try:
        lock()
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
