"""Atomic writes of files, and reads of regular files."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import tempfile
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file atomically: readers see the old or the new content, even after a crash.

    Args:
        path: The file, or a link to it. Missing parent folders are created.
        content: New content.
    """
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    sync_folder(target.parent)


def open_regular(path: str | os.PathLike[str], mode: str = "rb") -> io.FileIO:
    """Open a file without buffering; refuse pipes, sockets and devices, which block or never end.

    Args:
        path: The file, or a link to it.
        mode: Binary mode in which an existing file is opened: "rb" or "r+b".

    Raises:
        OSError: If the file is missing, or not a regular file.
    """
    file = io.FileIO(path, mode, opener=_open_at_once)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "is not a regular file", os.fspath(path))
    return file


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file.

    Args:
        path: The file, or a link to it.

    Raises:
        OSError: If the file is missing, or not a regular file.
    """
    with open_regular(path) as file:
        return file.read()


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Flush the entries of a folder to the disk, if the system supports it."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # Windows cannot open folders
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
