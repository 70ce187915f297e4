"""Start of the processes of a job."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from ember_ml._core.errors import ArgumentError
from ember_ml._core.namespaces import import_module
from ember_ml.backend import get_backend
from ember_ml.backend.interface import Launcher
from ember_ml.backend.selection import check_name
from ember_ml.distributed import failures
from ember_ml.distributed.errors import DistributedError
from ember_ml.distributed.world import _engine

RESTARTS = 3
"""How many times a job is restarted by default, where the launcher can."""
WORKER = "ember_ml.distributed.worker"


class Job(NamedTuple):
    """Processes to start.

    Attributes:
        words: What each process runs: a script, "module:name", or "-m" and a module; then the
            arguments.
        nproc: Number of processes of this machine. Default: one for each GPU, or 1.
        nnodes: Number of machines, or "MIN:MAX". Each of them runs the same command.
        endpoint: Address of the machine where all meet, "HOST:PORT", if there are several.
        max_restarts: How many times to restart after a process has failed. Default: 3 if the
            launcher of the backend can restart, otherwise 0.
    """

    words: Sequence[str]
    nproc: int | None = None
    nnodes: str = "1"
    endpoint: str | None = None
    max_restarts: int | None = None


def run_job(job: Job) -> int:
    """Run the processes of a job on the active backend; return the exit code.

    The error of the process that failed first is printed.

    Args:
        job: The job.
    """
    backend = get_backend()
    launcher = _launcher(backend)
    nproc = launcher.count_devices() if job.nproc is None else job.nproc
    restarts = _checked(job, nproc, launcher, backend)
    with tempfile.TemporaryDirectory(prefix="ember-launch-") as folder, _restored_variables():
        os.environ.update(_environment(job, nproc))
        os.environ.update({failures.FOLDER: folder, "EMBER_ML_BACKEND": backend})
        command = [sys.executable, "-u", "-m", WORKER, *job.words]
        code, reason = launcher.run(command, nproc, job.nnodes, job.endpoint, restarts)
        failure = failures.first(Path(folder))
        if not code and failures.count_done(Path(folder)) < nproc:
            code = 1 if failure is None else failure.code
        if code and code not in _SIGNALS:
            _report(code, failure, reason)
    return code


_SIGNALS = (128 + signal.SIGINT, 128 + signal.SIGTERM)
"""Exit codes of a job that a signal has ended, which is not an error."""


@contextlib.contextmanager
def _restored_variables() -> Iterator[None]:
    """Restore the environment variables, which launchers change, after the block."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _report(code: int, failure: failures.Failure | None, reason: str) -> None:
    if failure is not None:
        reason = f"process {failure.rank} failed first: {failure.text.rstrip()}"
    sys.stderr.write(f"error: {reason or f'a process ended with exit code {code}'}\n")


def _launcher(backend: str) -> Launcher:
    name = _engine(backend).LAUNCHER
    if name is None:
        raise DistributedError(
            f"the backend {backend} trains in one process; launch with --backend torch"
        )
    launcher: Any = import_module(name)
    return cast("Launcher", launcher)


def _checked(job: Job, nproc: int, launcher: Launcher, backend: str) -> int:
    """Return the number of restarts; raise an error if the launcher cannot run the job."""
    if nproc < 1:
        raise ArgumentError(f"launch: nproc must be at least 1, not {nproc}")
    if job.nnodes != "1" and not launcher.MACHINES:
        raise DistributedError(
            f"the backend {backend} launches processes on one machine here; for {job.nnodes} "
            "machines, start the same script with the launcher of the backend"
        )
    if job.nnodes != "1" and job.endpoint is None:
        raise ArgumentError(
            f"launch: nnodes={job.nnodes} needs the address of one of the machines, such as "
            "--rdzv-endpoint host:29400"
        )
    if job.max_restarts is None:
        return RESTARTS if launcher.RESTARTS else 0
    if job.max_restarts < 0:
        raise ArgumentError(f"launch: max_restarts must not be negative, but is {job.max_restarts}")
    if job.max_restarts and not launcher.RESTARTS:
        raise DistributedError(
            f"the launcher of the backend {backend} does not restart processes; pass "
            "--max-restarts 0, and start the job again to continue it"
        )
    return job.max_restarts


def _environment(job: Job, nproc: int) -> dict[str, str]:
    """Return the environment variables that processes need and that are not set."""
    threads = max(1, len(os.sched_getaffinity(0)) // nproc) if _LINUX else 1
    values = {"OMP_NUM_THREADS": str(threads)}
    if job.nnodes == "1":
        values["GLOO_SOCKET_IFNAME"] = _loopback()
    return {name: value for name, value in values.items() if name not in os.environ}


_LINUX = hasattr(os, "sched_getaffinity")


def _loopback() -> str:
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in ("lo", "lo0") if name in names), names[0])


def launch(
    target: str,
    nproc: int | None = None,
    arguments: Sequence[str] = (),
    *,
    max_restarts: int | None = None,
    backend: str | None = None,
) -> None:
    """Run a script, a function or a YAML file of `ember train` in several processes.

    `ember launch` does the same. A notebook may call it: the processes are new ones.

    Args:
        target: Path of a script or of a YAML file, or a function as "module:name".
        nproc: Number of processes. Default: one for each GPU, or 1.
        arguments: Arguments of the script, or changes of the YAML file such as "epochs=2".
        max_restarts: How many times to restart from the last checkpoint after a process has failed.
            Default: 3 on torch; MLX cannot restart.
        backend: Name of the backend. Default: the active one.

    Raises:
        DistributedError: If the job failed. The error of the process that failed first is printed.
    """
    words = [sys.executable, "-m", "ember_ml", "launch"]
    words += ["--backend", check_name(backend) if backend is not None else get_backend()]
    words += [] if nproc is None else ["--nproc", str(nproc)]
    words += [] if max_restarts is None else ["--max-restarts", str(max_restarts)]
    with subprocess.Popen([*words, target, *arguments]) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.wait()  # the processes save a checkpoint
            raise
    if code:
        raise DistributedError(f"launch: {target} ended with exit code {code}")
