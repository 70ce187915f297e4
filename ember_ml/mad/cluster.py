"""Pool of Ray tasks for the runs of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.pool import Event, jobs_of, run_events
from ember_ml.training.sweeps import ClusterError as ClusterError
from ember_ml.training.sweeps import RayRunner


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
        self.runner = RayRunner(address, backend, device, cpus)
        self.checkpoints = None if checkpoints is None else checkpoints.absolute()

    def __call__(self, runs: Sequence[RunConfig]) -> Iterator[Event]:
        """Yield events until all runs are done or failed."""
        self.runner.workers = len(runs)  # Ray sees all runs, so that a cluster can grow
        return run_events(self.runner, jobs_of(runs, self.checkpoints))
