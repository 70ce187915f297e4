"""Search for the learning rate and weight decay of each architecture, under an equal budget."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ember_ml.mad.architecture import Architecture
from ember_ml.mad.pool import perform
from ember_ml.mad.run import Point
from ember_ml.mad.scales import Rates, Scale, make_runs
from ember_ml.mad.store import run_name
from ember_ml.training.sweeps import Event, Job, Report, Runner, work_name
from ember_ml.training.tuning import Float, SelfTuningModule, Trial
from ember_ml.training.tuning.parallel import Search, search_events

SPACE = {
    "learning_rate": Float(1e-4, 3e-2, log=True),
    "weight_decay": Float(0.0, 0.3),
}
OBJECTIVES = {"validation_accuracy": "max", "validation_loss": "min"}
"""The loss decides between equal accuracies, as in the selection from a grid."""
SAMPLER = "random"
"""With the same seed, so that all architectures try the same values in any order of the runs."""


class Tuned(NamedTuple):
    """Outcome of the search of an architecture on a task."""

    architecture: str
    task: str
    trials: int
    """Number of trials that are over; the budget, once the search is complete."""
    failed: int
    best: Trial | None

    def rates(self) -> Rates | None:
        """Return the best hyperparameters; None if no trial succeeded."""
        return None if self.best is None else Rates(**self.best.params)


class SweepTuning:
    """Searches of all architectures and tasks of a sweep, with the same number of trials each.

    A trial is a run of the task at its default difficulty with the first seed. It is scored on the
    validation split.

    Args:
        folder: Folder of the sweep, whose subfolder `tuning` has the histories.
        budget: Number of trials of each architecture on each task.
        architectures: Architectures of the sweep.
        tasks: Names of the tasks.
        scale: Sizes of models and training.
        seed: Seed of the runs.
    """

    def __init__(
        self,
        folder: Path,
        budget: int,
        architectures: Sequence[Architecture],
        tasks: Sequence[str],
        scale: Scale,
        seed: int,
    ) -> None:
        self.folder = folder
        self.budget = budget
        self.architectures = {each.name: each for each in architectures}
        self.tasks = list(tasks)
        self.scale = scale._replace(harder=False)
        self.seed = seed
        self._tuners: dict[tuple[str, str], SelfTuningModule] = {}

    def _tuner(self, name: str, task: str) -> SelfTuningModule:
        if (name, task) not in self._tuners:
            path = history_path(self.folder, self.architectures[name], task)
            self._tuners[name, task] = _open(path, task)
        return self._tuners[name, task]

    def pairs(self) -> list[tuple[str, str]]:
        """Return all architectures and tasks."""
        return [(name, task) for task in self.tasks for name in self.architectures]

    def outcomes(self) -> list[Tuned]:
        """Return the outcome of each search, also of those that are not complete."""
        return [outcome(self._tuner(*pair), *pair) for pair in self.pairs()]

    def is_complete(self) -> bool:
        """Return whether all trials are over."""
        return all(each.trials >= self.budget for each in self.outcomes())

    def rates(self) -> dict[tuple[str, str], Rates]:
        """Return the best hyperparameters by architecture and task."""
        found = {(each.architecture, each.task): each.rates() for each in self.outcomes()}
        return {pair: rates for pair, rates in found.items() if rates is not None}

    def events(self, runner: Runner) -> Iterator[Event]:
        """Run the remaining trials and yield their events.

        Args:
            runner: Does the trials.
        """
        searches = [
            Search(self._tuner(*pair), self._jobs(*pair), self.budget) for pair in self.pairs()
        ]
        return search_events(searches, runner)

    def _jobs(self, name: str, task: str) -> Any:
        def job_of(trial: Trial) -> Job:
            rates = {(name, task): Rates(**trial.params)}
            runs = make_runs(
                self.scale, [self.architectures[name]], [task], [self.seed], tuned=rates
            )
            checkpoints = str((self.folder / "tuning" / "checkpoints").absolute())
            return Job(work_name(work), {"run": runs[0].to_dict(), "checkpoints": checkpoints})

        return job_of


def history_path(folder: Path, architecture: Architecture, task: str) -> Path:
    """Return the path of the history of an architecture on a task.

    Args:
        folder: Folder of the sweep.
        architecture: The architecture.
        task: Name of the task.
    """
    words = re.sub(r"[^A-Za-z0-9]+", "-", architecture.name).strip("-")[:40]
    digest = hashlib.sha256(repr(tuple(architecture)).encode()).hexdigest()[:10]
    return folder / "tuning" / f"{task}.{words}.{digest}.jsonl"


def _open(path: Path, task: str) -> SelfTuningModule:
    return SelfTuningModule(
        SPACE, path, "validation_accuracy", sampler=SAMPLER, objectives=OBJECTIVES, task=task
    )


def outcome(tuner: SelfTuningModule, name: str, task: str) -> Tuned:
    """Return the outcome of a search.

    Args:
        tuner: Its tuner.
        name: Name of the architecture.
        task: Name of the task.
    """
    trials = tuner.trials
    done = [each for each in trials if each.state == "done"]
    best = max(
        done,
        key=lambda each: (each.scores["validation_accuracy"], -each.scores["validation_loss"]),
        default=None,
    )
    over = sum(each.is_over for each in trials)
    return Tuned(name, task, over, sum(each.state == "failed" for each in trials), best)


def read_outcomes(
    folder: Path, architectures: Sequence[Architecture], tasks: Sequence[str]
) -> list[Tuned]:
    """Return the outcomes of the searches that the folder of a sweep has.

    Args:
        folder: Folder of the sweep.
        architectures: Architectures of the sweep.
        tasks: Names of the tasks.
    """
    return [
        outcome(_open(path, task), each.name, task)
        for task in tasks
        for each in architectures
        if (path := history_path(folder, each, task)).exists()
    ]


def work(data: dict[str, Any], report: Report) -> dict[str, Any]:
    """Run a trial in a worker, and return its outcome.

    Args:
        data: Config of the run, and the folder of the checkpoints of unfinished trials.
        report: Sends (step, accuracy) to the tuner.
    """
    from ember_ml.configs.mad import RunConfig

    def observe(point: Point) -> bool:
        return report((point.step, point.accuracy))

    result = perform(data, observe)
    shutil.rmtree(
        Path(data["checkpoints"]) / run_name(RunConfig.from_dict(data["run"])), ignore_errors=True
    )
    return {"kind": "told", "values": {name: getattr(result, name) for name in OBJECTIVES}}
