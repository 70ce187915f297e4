"""A process of a job: `python -m ember_ml.distributed.worker TARGET ARGUMENTS`.

The target is a script, a function "module:name", or "-m" and a module.
"""

from __future__ import annotations

import importlib
import os
import runpy
import signal
import sys
import threading
import time
import warnings
from collections.abc import Sequence

from ember_ml.distributed import failures
from ember_ml.distributed.environment import read_environment

_CHECK_SECONDS = 1.0
_WAIT_SECONDS = 5.0
"""Seconds that a launcher which has ended leaves for the signal that it has sent."""
_GRACE_SECONDS = 30.0
"""Seconds to save a checkpoint after the launcher was killed."""


def main(words: Sequence[str]) -> None:
    """Run a target in this process, and record its error for the launcher.

    Args:
        words: The target and its arguments.
    """
    place, folder = read_environment(), failures.folder()
    before = None if folder is None else failures.start(folder, place.restarts)
    if before is not None and before.is_final:
        sys.exit(before.code)
    if not place.is_main:
        warnings.simplefilter("ignore")  # the main process shows them
    elif place.restarts:
        sys.stderr.write(f"restart {place.restarts}{_reason(before)}\n")
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    try:
        run(words)
    except SystemExit as end:
        if end.code:
            raise
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        if not failures.record(error, code=1):
            raise
        sys.exit(1)
    if folder is not None:
        failures.mark_done(folder, place.rank)


def _reason(before: failures.Failure | None) -> str:
    if before is None:
        return ": a process was killed"
    return f": process {before.rank} failed: {before.text.strip().splitlines()[-1].strip()}"


def run(words: Sequence[str]) -> None:
    """Run a script, a function "module:name", or "-m" and a module.

    Args:
        words: The target and its arguments, which become `sys.argv`.
    """
    target, *arguments = words
    if target == "-m":
        sys.argv = list(arguments)
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return
    sys.argv = [target, *arguments]
    module, _, name = target.partition(":")
    if name and not os.path.exists(target):
        sys.path.insert(0, os.getcwd())
        getattr(importlib.import_module(module), name)()
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(target)))  # as `python target` does
    runpy.run_path(target, run_name="__main__")


def _end_with(parent: int) -> None:
    """End this process if its launcher was killed: as on SIGTERM, and then at once."""
    while os.getppid() == parent:
        time.sleep(_CHECK_SECONDS)
    time.sleep(_WAIT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os._exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    main(sys.argv[1:])
