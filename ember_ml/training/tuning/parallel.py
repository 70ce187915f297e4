"""Trials on the runner of sweeps: in processes of this machine or on a cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml._core.tensor import EmberTensor
from ember_ml._core.tree import map_leaves
from ember_ml.training.sweeps.jobs import Event, Job, Report, Runner, find_work, work_name
from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.execution import Objective, run_trial
from ember_ml.training.tuning.train_objective import TrainObjective
from ember_ml.training.tuning.trial import Trial

if TYPE_CHECKING:
    from ember_ml.training.tuning.module import SelfTuningModule

JobOf = Callable[[Trial], Job]
"""Returns the job of a trial, which reports (step, value) and returns what `run_trial` does."""


class Search(NamedTuple):
    """A search whose trials a runner does."""

    tuner: SelfTuningModule
    job_of: JobOf
    budget: int
    """Number of trials of the task, in any state, in the history."""

    def next(self) -> Job | None:
        """Return the job of the next trial; None if the history has enough of them."""
        tuner = self.tuner
        with tuner.history.locked():  # the decision and the trial are one transaction
            if len(tuner.history.of_task(tuner.task)) >= self.budget and not tuner.lost():
                return None
            trial = tuner.ask()
        return self.job_of(trial)._replace(key=trial, answered=True)


def trial_events(
    tuner: SelfTuningModule, runner: Runner, job_of: JobOf, budget: int
) -> Iterator[Event]:
    """Run trials until the task has `budget` of them, and yield their events.

    Each event is recorded in the history before it is yielded. A trial is asked for when a worker
    is free, so that it is based on all results so far. The key of a job is its trial.

    Args:
        tuner: Tuner that proposes the trials and records their outcomes.
        runner: Does the jobs.
        job_of: Returns the job of a trial.
        budget: Number of trials of the task, in any state, in the history.
    """
    return search_events([Search(tuner, job_of, budget)], runner)


def search_events(searches: Sequence[Search], runner: Runner) -> Iterator[Event]:
    """Run the trials of several searches, one search after the other, and yield their events.

    Workers that one search leaves idle start with the next one.

    Args:
        searches: The searches.
        runner: Does the jobs.
    """
    active: dict[int, tuple[SelfTuningModule, Trial]] = {}

    def source() -> Job | None:
        for search in searches:
            job = search.next()
            if job is not None:
                active[id(job.key)] = search.tuner, job.key
                return job
        return None

    try:
        for event in runner(source):
            tuner, _ = active[id(event.job.key)]
            record(tuner, event)
            if event.kind in ("done", "failed"):
                del active[id(event.job.key)]
            yield event
    finally:
        for tuner, trial in active.values():
            tuner.release(trial)


def record(tuner: SelfTuningModule, event: Event) -> None:
    """Record an event of a trial in the history.

    Args:
        tuner: Tuner that proposed the trial.
        event: Event of the trial's job.
    """
    trial = event.job.key
    if event.kind == "report":
        if tuner.report(trial, *event.value):
            event.stop()
    elif event.kind == "done":
        tuner.record(trial, event.value)
    elif event.kind == "failed":
        tuner.fail(trial, last_line(event.value))


def last_line(error: str) -> str:
    """Return the last line of a traceback.

    Args:
        error: Text of an error.
    """
    return error.strip().rpartition("\n")[2]


def objective_jobs(objective: Objective | str) -> JobOf:
    """Return a function that returns the job of a trial.

    Args:
        objective: Function at the top level of a module, its name as "module:function", or the
            training of a config.
    """
    work: Any
    if isinstance(objective, TrainObjective):
        work = without_tensors(objective)
    else:
        work = work_name(objective)
    name = work_name(run_objective)
    return lambda trial: Job(name, {"objective": work, "trial": trial.to_dict()})


def without_tensors(objective: TrainObjective) -> TrainObjective:
    """Return an objective that can be sent to another process: tensors are replaced by arrays.

    Args:
        objective: The objective.
    """
    train, validation = (_arrays(data) for data in (objective.train, objective.validation))
    return dataclasses.replace(objective, train=train, validation=validation)


def _arrays(data: Any) -> Any:
    return map_leaves(lambda leaf: leaf.numpy() if isinstance(leaf, EmberTensor) else leaf, data)


def run_objective(data: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Run an objective on a trial in a worker.

    Args:
        data: The objective, or its name, and the trial as plain data.
        report: Sends (step, value) to the tuner; returns whether the trial continues.
    """
    objective: Any = data["objective"]
    function: Any = find_work(objective) if isinstance(objective, str) else objective
    if function is None:
        raise TuningError(f"the objective {objective!r} cannot be imported on this machine")
    return run_trial(function, data["trial"], lambda step, value: not report((step, float(value))))
