"""File locks between processes and threads, released when the process ends."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

WAIT = 120.0
"""Seconds to wait for a lock that another process holds."""


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
        yield _acquire(lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)) is not False
    finally:
        os.close(handle)


@contextlib.contextmanager
def held(path: Path, *, shared: bool = False, wait: float = WAIT) -> Iterator[bool]:
    """Wait for the lock of a folder or file, and hold it within the `with` block.

    The value of the block is False if the system or the disk does not support locks.

    Args:
        path: An existing folder or file. It need not be writable.
        shared: Whether others may hold the lock at the same time, if they share it too.
        wait: Seconds to wait. 0 tries once.

    Raises:
        TimeoutError: If another process or thread holds the lock for longer.
        FileNotFoundError: If the path does not exist.
    """
    if sys.platform == "win32":
        yield False
        return
    import fcntl

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    deadline = time.monotonic() + wait
    while True:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe must not block
        except PermissionError:  # a folder whose entries cannot be listed
            yield False
            return
        try:
            lock = functools.partial(fcntl.flock, handle, kind | fcntl.LOCK_NB)
            acquired = _wait(lock, deadline, path)
            if not _is_same(handle, path):
                continue  # it was replaced while we waited
            yield acquired
            return
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)  # also for copies of the handle after a fork
            os.close(handle)


def _wait(lock: Callable[[], None], deadline: float, path: Path) -> bool:
    """Wait for a lock; return False if locks are not supported."""
    pause = 0.001
    while (acquired := _acquire(lock)) is False:
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{path} is in use by another process or thread that saves or loads")
        time.sleep(pause)
        pause = min(2.0 * pause, 0.05)
    return acquired is not None


def _acquire(lock: Callable[[], None]) -> bool | None:
    """Return whether the lock was free; None if locks are not supported."""
    try:
        lock()
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
