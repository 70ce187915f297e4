"""Pool of worker processes for the runs of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.run import Point, Result, execute, probe
from ember_ml.mad.store import run_name, setting_of
from ember_ml.training.sweeps import Job, ProcessRunner, Report, Runner, work_name
from ember_ml.training.sweeps.jobs import fixed

MIN_STEPS_TO_PROBE = 100
"""Minimum number of steps of a run for which the time of a step is measured beforehand."""


class Event(NamedTuple):
    """Progress of a run."""

    run: RunConfig
    payload: Point | Result | str | float | None
    """None: the run started. Point: an evaluation. Result: the run is done. str: the error that
    ended the run. float: seconds of a training step, measured before the runs start."""


class ProcessPool:
    """Pool of worker processes; each does one run at a time on one thread.

    If a worker dies, its run counts as failed and the worker is replaced.

    Args:
        workers: Number of processes. Default: the number of cores.
        backend: Backend of the runs.
        device: Device of the backend. Default: its first one.
        checkpoints: Folder of the checkpoints of unfinished runs. Default: a run that is
            interrupted starts again from its first step.
    """

    def __init__(
        self,
        workers: int | None,
        backend: str,
        device: str | None = None,
        *,
        checkpoints: Path | None = None,
    ) -> None:
        self.runner = ProcessRunner(workers, backend, device)
        self.checkpoints = checkpoints

    def __call__(self, runs: Sequence[RunConfig]) -> Iterator[Event]:
        """Yield events until all runs are done or failed."""
        probes = [_job(run, measure, None) for run in runs_to_probe(runs)]
        return run_events(self.runner, [*probes, *jobs_of(runs, self.checkpoints)])


def runs_to_probe(runs: Sequence[RunConfig]) -> list[RunConfig]:
    """Return a run of each architecture and setting, if a measurement costs little in comparison.

    Args:
        runs: Runs that a pool is about to do.
    """
    distinct = {(run.architecture, setting_of(run)): run for run in reversed(runs)}
    long_enough = [run for run in distinct.values() if run.steps >= MIN_STEPS_TO_PROBE]
    return long_enough[::-1] if len(runs) > 1 else []


def jobs_of(runs: Sequence[RunConfig], checkpoints: Path | None) -> list[Job]:
    """Return runs as jobs of a sweep.

    Args:
        runs: Configs of the runs.
        checkpoints: Folder of the checkpoints of unfinished runs.
    """
    return [_job(run, perform, checkpoints) for run in runs]


def _job(run: RunConfig, work: Any, checkpoints: Path | None) -> Job:
    folder = None if checkpoints is None else str(checkpoints)
    return Job(work_name(work), {"run": run.to_dict(), "checkpoints": folder}, key=run)


def run_events(runner: Runner, jobs: Sequence[Job]) -> Iterator[Event]:
    """Yield the events of runs.

    A failed measurement is not an event: its run will report the error.

    Args:
        runner: Does the jobs.
        jobs: Runs and measurements.
    """
    runs = work_name(perform)
    for event in runner(fixed(jobs)):
        if event.job.work == runs or event.kind == "done":
            yield Event(event.job.key, event.value)


def perform(data: dict[str, Any], report: Report) -> Result:
    """Do a run in this process.

    Args:
        data: Config of the run as plain data, and the folder of the checkpoints of unfinished
            runs. The folder is not used if the sweep's folder does not exist on this machine.
        report: Called with each evaluation during training.

    Returns:
        The result.
    """
    config = RunConfig.from_dict(data["run"])
    checkpoints = None if data["checkpoints"] is None else Path(data["checkpoints"])
    usable = checkpoints is not None and checkpoints.parent.is_dir()
    folder = checkpoints / run_name(config) if usable and checkpoints else None
    return execute(config, report, folder)


def measure(data: dict[str, Any], report: Report) -> float:
    """Return the seconds of a training step of a run.

    Args:
        data: Config of the run as plain data.
        report: Not used.
    """
    return probe(RunConfig.from_dict(data["run"]))
