"""Errors of the processes of a job, of which the launcher shows the first one."""

from __future__ import annotations

import json
import os
import time
import traceback
from pathlib import Path
from typing import NamedTuple

from ember_ml._core.errors import EmberError
from ember_ml._core.files import write_atomically
from ember_ml.distributed.environment import read_environment
from ember_ml.distributed.errors import DistributedError

FOLDER = "EMBER_LAUNCH_FOLDER"
"""Environment variable with the folder of the errors of a job."""


class Failure(NamedTuple):
    """The error of a process."""

    restarts: int
    """How many times the processes had been restarted."""
    time: float
    rank: int
    code: int
    """Exit code of the process."""
    text: str
    """The message, or the traceback of an unexpected error."""
    is_final: bool
    """Whether the error would occur again after a restart."""


def folder() -> Path | None:
    """Return the folder for the errors of this job; None if `ember launch` did not start it."""
    path = os.environ.get(FOLDER)
    return None if path is None else Path(path)


def record(error: Exception, code: int, text: str | None = None) -> bool:
    """Write an error for the launcher; return False if `ember launch` did not start this process.

    Args:
        error: The error.
        code: Exit code of this process.
        text: The message. Default: the traceback.
    """
    path = folder()
    if path is None:
        return False
    place = read_environment()
    shown = "".join(traceback.format_exception(error)) if text is None else text
    final = isinstance(error, EmberError) and not isinstance(error, DistributedError)
    _write(path, Failure(place.restarts, time.time(), place.rank, code, shown, final))
    return True


def _write(path: Path, failure: Failure) -> None:
    name = f"{failure.restarts:04d}-{failure.rank:06d}.json"
    write_atomically(path / name, json.dumps(failure).encode())


def start(path: Path, restarts: int) -> Failure | None:
    """Note a start of the processes; return the first error before it, None if there was none.

    An error that would occur again is also the first one after the start.

    Args:
        path: Folder of the errors.
        restarts: How many times the processes were restarted.
    """
    (path / f"start-{restarts:04d}").touch()
    before = first(path, restarts - 1)
    if before is not None and before.is_final:
        _write(path, before._replace(restarts=restarts))
    return before


def first(path: Path, restarts: int | None = None) -> Failure | None:
    """Return the first error of the processes between two restarts; None if there was none.

    Args:
        path: Folder of the errors.
        restarts: How many restarts there were before. Default: all.
    """
    if restarts is None:
        restarts = len(list(path.glob("start-*"))) - 1
    every = [
        Failure(*json.loads(file.read_bytes())) for file in path.glob(f"{restarts:04d}-*.json")
    ]
    # other errors may be the consequence of one that would occur again
    return min(every, key=lambda each: (not each.is_final, each.time), default=None)


def mark_done(path: Path, rank: int) -> None:
    """Note that a process has ended without an error."""
    (path / f"done-{rank}").touch()


def count_done(path: Path) -> int:
    """Return the number of processes that have ended without an error."""
    return len(list(path.glob("done-*")))
