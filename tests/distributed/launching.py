"""`ember launch` in a network of its own, for tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.distributed.processes import ROOT, namespace

_RUN = (
    "import os, sys; from tests.distributed.host import bring_up_loopback; bring_up_loopback(); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


def command(*words: Any) -> list[str]:
    """Return the command that runs Python with some arguments in a network of its own."""
    return [*namespace(), sys.executable, "-c", _RUN, *(str(word) for word in words)]


def variables(**more: str) -> dict[str, str]:
    """Return environment variables without those of launchers."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MLX_RANK", "MLX_HOSTFILE", "EMBER_ML_BACKEND")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **more}


def launch(*words: Any, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run `ember launch` in a folder, and return its output."""
    return subprocess.run(
        command("-m", "ember_ml", "launch", *words),
        capture_output=True,
        text=True,
        cwd=folder,
        env=variables(),
        timeout=600,
        check=False,
    )


class Sign(NamedTuple):
    """What a process of a job writes after each step."""

    pid: int
    step: int
    restarts: int


class Job:
    """A running `ember launch` of `tests.distributed.jobs:main`, which can be disturbed.

    Args:
        folder: Folder of the run.
        settings: Arguments of `jobs.run`.
        options: Options of `ember launch`.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], *options: Any) -> None:
        self.folder = folder
        text = json.dumps({"folder": str(folder), **settings})
        self.errors = (folder / "errors.txt").open("a+")
        self.process = subprocess.Popen(
            command("-m", "ember_ml", "launch", *options, "tests.distributed.jobs:main"),
            stdout=self.errors,
            stderr=self.errors,
            cwd=ROOT,
            env=variables(EMBER_TEST_JOB=text, TORCH_ELASTIC_SHUTDOWN_TIMEOUT="30"),
            start_new_session=True,
        )

    def sign(self, rank: int) -> Sign:
        """Return what a process has written last; read it again while it is being replaced."""
        for _ in range(100):
            with contextlib.suppress(FileNotFoundError, ValueError):
                return Sign(*json.loads((self.folder / f"process-{rank}").read_text()))
        return Sign(0, 0, -1)

    def wait_until(self, condition: Callable[[], bool], seconds: float = 300) -> None:
        """Wait for a condition; fail if the job ends before."""
        end = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, f"the job has ended:\n{self.output()}"
            assert time.monotonic() < end, f"nothing happened:\n{self.output()}"
            time.sleep(0.005)

    def output(self) -> str:
        """Return what the job has printed."""
        return (self.folder / "errors.txt").read_text()


@contextlib.contextmanager
def running(folder: Path, settings: dict[str, Any], *options: Any) -> Iterator[Job]:
    """Run a job within the block, and kill its launcher afterwards."""
    job = Job(folder, settings, *options)
    try:
        yield job
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.process.pid, signal.SIGKILL)
        job.process.wait()
        job.errors.close()
