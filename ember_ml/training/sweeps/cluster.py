"""Jobs on a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ember_ml._core.errors import EmberError
from ember_ml._core.requirements import install_command
from ember_ml.registry import plugins
from ember_ml.training.sweeps.jobs import Event, Job, Outcome, Source, perform
from ember_ml.training.sweeps.mailbox import Mailbox

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

POLL_SECONDS = 0.5
"""Interval between two checks for progress."""
MAX_RETRIES = 3
"""Number of times that a job is repeated after its process or machine has failed."""
PLACES = {None: "on this machine", "auto": "that this machine is part of"}
"""Descriptions of the addresses that are not host names."""


class ClusterError(EmberError, RuntimeError):
    """Raised if Ray is not installed or the cluster cannot be reached."""


class RayRunner:
    """Ray tasks, one per job.

    Ember ML and the plugins in use must be installed on the machines of the cluster. If a machine
    fails, Ray restarts its jobs on another one.

    Args:
        address: Address of the cluster. "auto" joins the cluster this machine is part of; None
            starts one on this machine.
        backend: Backend of the jobs. Default: the active one of each process.
        device: Device of the backend. Default: its first one.
        cpus: Number of cores of each job.
        workers: Maximum number of jobs in flight. Default: the cores of the cluster divided by
            `cpus`.
    """

    def __init__(
        self,
        address: str | None,
        backend: str | None = None,
        device: str | None = None,
        cpus: float = 1,
        workers: int | None = None,
    ) -> None:
        try:
            import ray
        except ImportError:
            raise ClusterError(
                f"Ray is not installed; install it with: {install_command('ray')}"
            ) from None
        self._ray = ray
        self.address = address
        self.backend = backend
        self.device = device
        self.cpus = cpus
        self.workers = workers

    def __call__(self, source: Source) -> Iterator[Event]:
        """Yield events until the source has no more jobs and none is active."""
        started_ray = not self._ray.is_initialized()
        if started_ray:
            self._connect()
        mailbox = self._ray.remote(num_cpus=0, max_concurrency=1000)(Mailbox).remote()
        try:
            yield from self._events(source, mailbox)
        finally:
            self._ray.kill(mailbox)
            if started_ray:
                self._ray.shutdown()

    def _events(self, source: Source, mailbox: ActorHandle) -> Iterator[Event]:
        work = self._ray.remote(num_cpus=self.cpus, max_retries=MAX_RETRIES)(_work)
        workers = self.workers or self._num_slots()
        pending: dict[ObjectRef, int] = {}
        jobs: dict[int, Job] = {}
        while True:
            while len(pending) < workers and (job := source()) is not None:
                at = len(jobs)
                jobs[at] = job
                given = at, job.work, job.data, job.answered, self.backend, self.device
                pending[work.remote(*given, mailbox)] = at
            if not pending:
                return
            arrived = mailbox.wait.remote(POLL_SECONDS)
            self._ray.wait([arrived, *pending], num_returns=1)
            ready, _ = self._ray.wait(list(pending), num_returns=len(pending), timeout=0)
            yield from self._progress(mailbox, jobs)
            for task in ready:
                yield Event(jobs[pending.pop(task)], *self._outcome(task))

    def _progress(self, mailbox: ActorHandle, jobs: dict[int, Job]) -> Iterator[Event]:
        """Yield what jobs have reported, and answer them."""
        for at, kind, value in self._ray.get(mailbox.take.remote()):
            event = Event(jobs[at], kind, value)
            yield event
            if kind == "report" and event.job.answered:
                mailbox.answer.remote(at, not event.stopped)

    def _num_slots(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1) // self.cpus))

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

    def _outcome(self, task: ObjectRef) -> Outcome:
        try:
            outcome: Outcome = self._ray.get(task)
        except Exception as error:  # the process or machine of the task has failed
            return Outcome("failed", f"Ray: {error}")
        return outcome


def _check_reachable(address: str) -> None:
    """Raise an error if nothing listens at the address; Ray itself retries for minutes."""
    parts = urlsplit(address if "//" in address else f"//{address}")
    if parts.hostname is None or parts.port is None:
        raise ValueError("the address must be host:port or ray://host:port")
    socket.create_connection((parts.hostname, parts.port), timeout=10).close()


def _work(
    at: int,
    work: str,
    data: object,
    answered: bool,
    backend: str | None,
    device: str | None,
    mailbox: ActorHandle,
) -> Outcome:
    """Do a job on a machine of the cluster, and report its progress."""
    import ray

    def report(value: Any, kind: str = "report") -> bool:
        waits = answered and kind == "report"
        return bool(ray.get(mailbox.put.remote(at, kind, value, waits)))

    report(None, "started")
    return perform(work, data, report, backend, device)
