"""File locks between processes, released when the process ends."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file within the `with` block, which receives whether it was free.

    On systems and disks without such locks it always counts as free.

    Args:
        path: The lock file; created if missing.
    """
    if sys.platform == "win32":
        yield True
        return
    import fcntl

    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield _acquire(lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB))
    finally:
        os.close(handle)


def _acquire(lock: Callable[[], None]) -> bool:
    try:
        lock()
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
