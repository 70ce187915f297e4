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
    failure = Failure(place.restarts, time.time(), place.rank, code, shown, final)
    name = f"{place.restarts:04d}-{place.rank:06d}.json"
    write_atomically(path / name, json.dumps(failure).encode())
    return True


def first(path: Path) -> Failure | None:
    """Return the first error since the last restart that had one; None if there is none.

    Args:
        path: Folder of the errors.
    """
    every = [Failure(*json.loads(file.read_bytes())) for file in path.glob("*.json")]
    last = max((each.restarts for each in every), default=0)
    latest = [each for each in every if each.restarts == last]
    # an error of a connection follows from the error of another process
    return min(latest, key=lambda each: (not each.is_final, each.time), default=None)


def mark_done(path: Path, rank: int) -> None:
    """Note that a process has ended without an error."""
    (path / f"done-{rank}").touch()


def count_done(path: Path) -> int:
    """Return the number of processes that have ended without an error."""
    return len(list(path.glob("done-*")))
