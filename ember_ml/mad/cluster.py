"""Runs side by side, on the machines of a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from ember_ml._core.errors import EmberError
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.pool import Event, outcome, perform
from ember_ml.mad.run import Point
from ember_ml.registry import plugins

PATIENCE = 0.5
"""Seconds between two looks at what the runs have said."""
NAMES = {None: "on this machine", "auto": "that this machine is part of"}
"""Of clusters that have no address."""


class ClusterError(EmberError, RuntimeError):
    """A cluster that cannot be used."""


class RayPool:
    """Ray tasks that each do one run, on one core.

    Ember ML, and the plugins in use, must be on the machines of the cluster. A task whose machine
    goes away is begun again by Ray on another one.

    Args:
        address: of the cluster; "auto" finds the one this machine is part of; without one, a
            cluster of this machine alone is started.
        backend: where they compute.
        device: on which device of it, if it matters.
        cpus: cores of each run.
    """

    def __init__(
        self, address: str | None, backend: str, device: str | None = None, cpus: float = 1
    ) -> None:
        try:
            import ray
            from ray.util.queue import Queue
        except ImportError:
            raise ClusterError(
                "Ray is not installed; install it with: pip install 'ember-ml[cluster]'"
            ) from None
        self._ray: Any = ray
        self._queue: Any = Queue
        self.address = address
        self.backend = backend
        self.device = device
        self.cpus = cpus

    def __call__(self, runs: Sequence[RunConfig]) -> Iterator[Event]:
        """What happens, until all runs are done or failed."""
        began = not self._ray.is_initialized()
        if began:
            self._join()
        said = self._queue(actor_options={"num_cpus": 0})
        work = self._ray.remote(num_cpus=self.cpus, max_retries=3)(_work)
        try:
            waiting = {
                work.remote(at, run.to_dict(), self.backend, self.device, said): run
                for at, run in enumerate(runs)
            }
            while waiting:
                ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=PATIENCE)
                for at, what in said.get_nowait_batch(said.qsize()):
                    yield Event(runs[at], None if what is None else Point(*what))
                for task in ready:
                    yield self._event(waiting.pop(task), task)
        finally:
            said.shutdown(force=True)
            if began:
                self._ray.shutdown()

    def _join(self) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self.address is None:
            options["include_dashboard"] = False
        if plugins.named():
            options["runtime_env"] = {"env_vars": {plugins.VARIABLE: os.environ[plugins.VARIABLE]}}
        try:
            if self.address not in NAMES:
                _knock(str(self.address))
            self._ray.init(address=self.address or "local", **options)
        except Exception as error:  # of many kinds
            where = NAMES.get(self.address, f"at {self.address}")
            raise ClusterError(f"no Ray cluster {where}: {error}") from error

    def _event(self, run: RunConfig, task: Any) -> Event:
        try:
            return outcome(run, self._ray.get(task))
        except Exception as error:  # the task's process or machine is gone
            return Event(run, f"Ray: {error}")


def _knock(address: str) -> None:
    """An error at once if nothing is there; Ray itself tries for minutes."""
    found = urlsplit(address if "//" in address else f"//{address}")
    if found.hostname is None or found.port is None:
        raise ValueError("an address is host:port or ray://host:port")
    socket.create_connection((found.hostname, found.port), timeout=10).close()


def _work(
    at: int, run: dict[str, Any], backend: str, device: str | None, said: Any
) -> tuple[str, Any]:
    """Do a run on a machine of the cluster, and say how it goes."""
    said.put((at, None))
    return perform(run, backend, device, lambda point: said.put((at, tuple(point))))
