"""Runs side by side, on the machines of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ember_ml._core.errors import EmberError
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.pool import Event, outcome, perform


class ClusterError(EmberError, RuntimeError):
    """A cluster that cannot be used."""


class RayPool:
    """Ray tasks that each do one run, on one core.

    Progress within a run is not shown; a task whose machine goes away is tried again by Ray.

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
        except ImportError:
            raise ClusterError(
                "Ray is not installed; install it with: pip install 'ember-ml[cluster]'"
            ) from None
        self._ray: Any = ray
        self.address = address
        self.backend = backend
        self.device = device
        self.cpus = cpus

    def __call__(self, runs: Sequence[RunConfig]) -> Iterator[Event]:
        """What happens, until all runs are done or failed."""
        ray = self._ray
        began = not ray.is_initialized()
        if began:
            ray.init(address=self.address, include_dashboard=False, log_to_driver=False)
        work = ray.remote(num_cpus=self.cpus, max_retries=3)(perform)
        try:
            waiting = {}
            for run in runs:
                waiting[work.remote(run.to_dict(), self.backend, self.device)] = run
                yield Event(run, None)
            while waiting:
                (ready,), _ = ray.wait(list(waiting), num_returns=1)
                run = waiting.pop(ready)
                yield self._event(run, ready)
        finally:
            if began:
                ray.shutdown()

    def _event(self, run: RunConfig, ready: Any) -> Event:
        try:
            return outcome(run, self._ray.get(ready))
        except Exception as error:  # the task's process or machine is gone
            return Event(run, f"Ray: {error}")
