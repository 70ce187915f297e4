"""Runs on a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ember_ml._core.errors import EmberError
from ember_ml._core.requirements import install_command
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.pool import Event, perform
from ember_ml.mad.run import Point, Result
from ember_ml.registry import plugins

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.util.queue import Queue

POLL_SECONDS = 0.5
"""Interval between two checks for progress."""
PLACES = {None: "on this machine", "auto": "that this machine is part of"}
"""Descriptions of the addresses that are not host names."""


class ClusterError(EmberError, RuntimeError):
    """Raised if Ray is not installed or the cluster cannot be reached."""


class RayPool:
    """Pool of Ray tasks, one per run.

    Ember ML and the plugins in use must be installed on the machines of the cluster. If a machine
    fails, Ray restarts its runs on another one.

    Args:
        address: Address of the cluster. "auto" joins the cluster this machine is part of; None
            starts one on this machine.
        backend: Backend of the runs.
        device: Device of the backend. Default: its first one.
        cpus: Number of cores of each run.
        checkpoints: Folder of the checkpoints of unfinished runs, used by the machines that can
            access it.
    """

    def __init__(
        self,
        address: str | None,
        backend: str,
        device: str | None = None,
        cpus: float = 1,
        *,
        checkpoints: Path | None = None,
    ) -> None:
        try:
            import ray
            from ray.util.queue import Queue
        except ImportError:
            raise ClusterError(
                f"Ray is not installed; install it with: {install_command('ray')}"
            ) from None
        self._ray = ray
        self._queue = Queue
        self.address = address
        self.backend = backend
        self.device = device
        self.cpus = cpus
        self.checkpoints = None if checkpoints is None else checkpoints.absolute()

    def __call__(self, runs: Sequence[RunConfig]) -> Iterator[Event]:
        """Yield events until all runs are done or failed."""
        started_ray = not self._ray.is_initialized()
        if started_ray:
            self._connect()
        progress = self._queue(actor_options={"num_cpus": 0})
        work = self._ray.remote(num_cpus=self.cpus, max_retries=3)(_work)
        try:
            pending = {
                work.remote(
                    at, run.to_dict(), self.backend, self.device, progress, self.checkpoints
                ): run
                for at, run in enumerate(runs)
            }
            while pending:
                ready, _ = self._ray.wait(list(pending), num_returns=1, timeout=POLL_SECONDS)
                for at, point in progress.get_nowait_batch(progress.qsize()):
                    yield Event(runs[at], point)
                for task in ready:
                    yield Event(pending.pop(task), self._outcome(task))
        finally:
            progress.shutdown(force=True)
            if started_ray:
                self._ray.shutdown()

    def _connect(self) -> None:
        options: dict[str, object] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self.address is None:
            options["include_dashboard"] = False
        if plugins.named():
            options["runtime_env"] = {"env_vars": {plugins.VARIABLE: os.environ[plugins.VARIABLE]}}
        try:
            if self.address not in PLACES:
                _check_reachable(str(self.address))
            self._ray.init(address=self.address or "local", **options)
        except Exception as error:  # Ray raises many types
            place = PLACES.get(self.address, f"at {self.address}")
            raise ClusterError(f"no Ray cluster {place}: {error}") from error

    def _outcome(self, task: ObjectRef) -> Result | str:
        try:
            outcome: Result | str = self._ray.get(task)
        except Exception as error:  # the process or machine of the task has failed
            return f"Ray: {error}"
        return outcome


def _check_reachable(address: str) -> None:
    """Raise an error if nothing listens at the address; Ray itself retries for minutes."""
    parts = urlsplit(address if "//" in address else f"//{address}")
    if parts.hostname is None or parts.port is None:
        raise ValueError("the address must be host:port or ray://host:port")
    socket.create_connection((parts.hostname, parts.port), timeout=10).close()


def _work(
    at: int,
    run: dict[str, object],
    backend: str,
    device: str | None,
    progress: Queue,
    checkpoints: Path | None,
) -> Result | str:
    """Do a run on a machine of the cluster, and report its progress."""
    progress.put((at, None))

    def observe(point: Point) -> None:
        progress.put((at, point))

    return perform(run, backend, device, observe, checkpoints)
