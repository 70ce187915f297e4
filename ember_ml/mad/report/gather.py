"""What a report is made of, read from the folder of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.report.plan import missing_runs
from ember_ml.mad.scales import task_names
from ember_ml.mad.scores import Cell, Score, cells, setting_of, task_of
from ember_ml.mad.store import Done, Failed, Store


class Report(NamedTuple):
    """A sweep, as far as it is."""

    about: dict[str, Any]
    architectures: list[str]
    """By name; the place of one in the list decides its colour."""
    tasks: list[str]
    done: list[Done]
    failed: list[Failed]
    missing: list[RunConfig]
    """Neither done nor failed."""
    cells: dict[tuple[str, str], Cell]
    """By architecture and task."""

    def runs(self) -> list[RunConfig]:
        """All of them, done or not."""
        return seen(self.done, self.failed) + self.missing

    def score(self, architecture: str, task: str, average: str) -> Score | None:
        """An architecture's score on a task, if it has one."""
        cell = self.cells.get((architecture, task))
        if cell is None:
            return None
        return cell.accuracy if average == "micro" else cell.macro_accuracy

    def settings(self, task: str) -> int:
        """In how many sizes the sweep has a task."""
        return len({setting_of(run) for run in self.runs() if task_of(run) == task})

    def is_partial(self, architecture: str, task: str) -> bool:
        """Whether there are results, but not of every run."""
        left = [each.run for each in self.failed] + self.missing
        return (architecture, task) in self.cells and any(
            run.architecture == architecture and task_of(run) == task for run in left
        )


def seen(done: Sequence[Done], failed: Sequence[Failed]) -> list[RunConfig]:
    """The runs that have an outcome."""
    return [each.run for each in done] + [each.run for each in failed]


def gather(store: Store) -> Report:
    """Read a sweep's folder."""
    about, done, failed = store.about(), store.done(), store.failed()
    runs = seen(done, failed)
    missing = missing_runs(about, runs)
    runs += missing
    there = {task_of(run) for run in runs}
    return Report(
        about,
        sorted({run.architecture for run in runs}),
        [name for name in task_names() if name in there] + sorted(there - set(task_names())),
        done,
        failed,
        missing,
        {(cell.architecture, cell.task): cell for cell in cells(done)},
    )
