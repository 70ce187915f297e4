"""Content of a report, read from the folder of a sweep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.architecture import Architecture
from ember_ml.mad.scales import SCALES, Rates, Scale, make_runs, task_names
from ember_ml.mad.scores import Cell, Score, cells, setting_of, task_of
from ember_ml.mad.sizes import Size
from ember_ml.mad.store import Done, Failed, Store, run_name
from ember_ml.mad.tuning import Tuned, read_outcomes


class Report(NamedTuple):
    """Runs and scores of a sweep, finished or not."""

    about: dict[str, Any]
    """Content of `sweep.json`."""
    architectures: list[str]
    """Names; the position determines the color."""
    tasks: list[str]
    done: list[Done]
    failed: list[Failed]
    missing: list[RunConfig]
    """Runs that are neither done nor failed."""
    cells: dict[tuple[str, str], Cell]
    """Scores by architecture and task."""
    tuned: Sequence[Tuned] = ()
    """Outcome of the tuning of each architecture on each task; empty without tuning."""

    def runs(self) -> list[RunConfig]:
        """Return all runs: done, failed and missing."""
        return _finished(self.done, self.failed) + self.missing

    def chosen(self, architecture: str | None = None, task: str | None = None) -> list[Done]:
        """Return the selected runs, optionally of one architecture or one task."""
        return [
            each
            for (name, task_name), cell in self.cells.items()
            if architecture in (None, name) and task in (None, task_name)
            for each in cell.chosen
        ]

    def sizes(self) -> list[Size]:
        """Return the sizes of the models of the selected runs."""
        return [
            Size(
                each.run.architecture,
                task_of(each.run),
                setting_of(each.run),
                each.result.parameters,
                each.result.state,
                each.result.state_per_token,
            )
            for each in self.chosen()
        ]

    def score(self, architecture: str, task: str, average: str) -> Score | None:
        """Return the score of an architecture on a task; None if it has none."""
        cell = self.cells.get((architecture, task))
        if cell is None:
            return None
        return cell.accuracy if average == "micro" else cell.macro_accuracy

    def num_settings(self, task: str) -> int:
        """Return the number of settings of a task."""
        return len({setting_of(run) for run in self.runs() if task_of(run) == task})

    def is_partial(self, architecture: str, task: str) -> bool:
        """Return whether an architecture has results on a task, but not of every run."""
        unfinished = [each.run for each in self.failed] + self.missing
        return (architecture, task) in self.cells and any(
            run.architecture == architecture and task_of(run) == task for run in unfinished
        )


def _finished(done: Sequence[Done], failed: Sequence[Failed]) -> list[RunConfig]:
    return [each.run for each in done] + [each.run for each in failed]


def gather(store: Store) -> Report:
    """Read the folder of a sweep."""
    about, done, failed = store.about(), store.done(), store.failed()
    runs = _finished(done, failed)
    tuned = _tuned(store, about)
    missing = missing_runs(about, runs, _rates(tuned))
    runs += missing
    tasks = {task_of(run) for run in runs}
    return Report(
        about,
        sorted({run.architecture for run in runs}),
        [name for name in task_names() if name in tasks] + sorted(tasks - set(task_names())),
        done,
        failed,
        missing,
        {(cell.architecture, cell.task): cell for cell in cells(done)},
        tuned,
    )


def _tuned(store: Store, about: Mapping[str, Any]) -> list[Tuned]:
    """Return the outcomes of the tuning of all plans; empty if the sweep has none."""
    if not about.get("tuning"):
        return []
    plans = about.get("plans", ())
    pairs = {
        (Architecture(*each), task)
        for plan in plans
        for each in plan["architectures"]
        for task in plan["tasks"]
    }
    found = [read_outcomes(store.path, [each], [task]) for each, task in sorted(pairs)]
    return [each for part in found for each in part]


def _rates(tuned: Sequence[Tuned]) -> dict[tuple[str, str], Rates]:
    known = {(each.architecture, each.task): each.rates() for each in tuned}
    return {pair: rates for pair, rates in known.items() if rates is not None}


def missing_runs(
    about: Mapping[str, Any],
    finished: Sequence[RunConfig],
    tuned: Mapping[tuple[str, str], Rates] | None = None,
) -> list[RunConfig]:
    """Return the runs of a sweep that have neither a result nor an error.

    Args:
        about: Content of `sweep.json`: scale and plans. If the plans do not contain the finished
            runs, every architecture is expected to have the runs of every other one.
        finished: Runs that are done or failed.
        tuned: Hyperparameters by architecture and task, if they were tuned.
    """
    names = {run_name(run) for run in finished}
    planned = _planned_runs(about, tuned)
    if not names <= planned.keys():  # a custom scale, or one that has changed since
        planned = _grid_runs(finished)
    return [run for name, run in planned.items() if name not in names]


def scale_of(about: Mapping[str, Any]) -> Scale | None:
    """Return the scale of a sweep, with its settings; None if it is unknown."""
    name, settings = str(about.get("scale")), about.get("settings")
    try:
        return SCALES.get(name) if settings is None else Scale.from_settings(name, settings)
    except TypeError:  # settings of another version
        return None


def _by_name(runs: Iterable[RunConfig]) -> dict[str, RunConfig]:
    return {run_name(run): run for run in runs}


def _planned_runs(
    about: Mapping[str, Any], tuned: Mapping[tuple[str, str], Rates] | None
) -> dict[str, RunConfig]:
    runs: dict[str, RunConfig] = {}
    scale = scale_of(about)
    if scale is None:
        return runs
    for plan in about.get("plans", ()):
        architectures = [Architecture(*each) for each in plan["architectures"]]
        runs |= _by_name(make_runs(scale, architectures, plan["tasks"], plan["seeds"], tuned))
    return runs


def _grid_runs(finished: Sequence[RunConfig]) -> dict[str, RunConfig]:
    """Return the finished runs of any architecture, for all architectures."""
    distinct = {}
    for run in finished:
        fields = {**run.to_dict(), "architecture": "", "layers": ""}
        distinct[json.dumps(fields, sort_keys=True)] = run
    layers = {run.architecture: run.layers for run in finished}
    return _by_name(
        run.model_copy(update={"architecture": name, "layers": layers[name]})
        for run in distinct.values()
        for name in layers
    )
