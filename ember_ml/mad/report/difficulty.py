"""How accuracy falls as a task gets harder, and how it rose in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ember_ml.configs.base import Config
from ember_ml.mad.report.gather import Report
from ember_ml.mad.run import Point
from ember_ml.mad.scores import setting_of
from ember_ml.mad.store import Done

Points = list[tuple[float, float]]


class Variable(NamedTuple):
    """A field of a task that a sweep has several values of."""

    task: str
    name: str
    lines: dict[str, Points]
    """Of each architecture: the value, and the accuracy there."""


def base_setting(report: Report, task: str) -> Config | None:
    """The setting from which the others of a task differ in one field: its default, as a rule."""
    configs = list(_settings(report, task).values())

    def rank(config: Config) -> tuple[int, int]:
        near = sum(len(_differences(config, other)) == 1 for other in configs)
        return near, _defaults(config)

    return max(configs, key=rank) if configs else None


def _settings(report: Report, task: str) -> dict[str, Config]:
    return {setting_of(each.run): each.run.task for each in _chosen(report, task)}


def _chosen(report: Report, task: str) -> list[Done]:
    return [e for (_, name), cell in report.cells.items() if name == task for e in cell.chosen]


def _differences(one: Config, other: Config) -> list[str]:
    return [name for name in type(one).model_fields if getattr(one, name) != getattr(other, name)]


def _defaults(config: Config) -> int:
    fields = type(config).model_fields
    return sum(getattr(config, name) == field.default for name, field in fields.items())


def variables(report: Report) -> list[Variable]:
    """Every field of every task that makes it harder, with the accuracies along it."""
    found = []
    for task in report.tasks:
        base = base_setting(report, task)
        others = [] if base is None else list(_settings(report, task).values())
        near = [_differences(base, other) for other in others if base is not None]
        names = dict.fromkeys(names[0] for names in near if len(names) == 1)
        for name in type(base).model_fields if base is not None else ():
            if name in names and _is_number(getattr(base, name)):
                found.append(_variable(report, task, name, base))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _variable(report: Report, task: str, name: str, base: Config | None) -> Variable:
    assert base is not None
    lines = {}
    for architecture in report.architectures:
        values: dict[float, list[float]] = {}
        cell = report.cells.get((architecture, task))
        for each in () if cell is None else cell.chosen:
            if _differences(base, each.run.task) in ([], [name]):
                values.setdefault(getattr(each.run.task, name), []).append(each.result.accuracy)
        if values:
            lines[architecture] = [(x, sum(y) / len(y)) for x, y in sorted(values.items())]
    return Variable(task, name, lines)


def curves(report: Report, task: str) -> dict[str, Points]:
    """Accuracy on the validation split over the steps, by architecture: the mean over the seeds.

    They are of the base setting, with the learning rate and weight decay that were best.
    """
    base = base_setting(report, task)
    lines = {}
    for name in report.architectures:
        cell = report.cells.get((name, task))
        runs = [] if cell is None else [e for e in cell.chosen if e.run.task == base]
        if runs:
            lines[name] = mean_curve([each.result.curve for each in runs])
    return lines


def mean_curve(runs: Sequence[tuple[Point, ...]]) -> Points:
    """The mean of several curves; one that ended early stays where it was.

    Example:
        >>> from ember_ml.mad.run import Point
        >>> short, longer = [Point(10, 1.0, 1.0, 2.0)], [Point(10, 1.0, 0.0, 2.0)]
        >>> mean_curve([(*short,), (*longer, Point(20, 1.0, 0.5, 2.0))])
        [(10, 0.5), (20, 0.75)]
    """
    steps = sorted({point.step for curve in runs for point in curve})
    found: Points = []
    for step in steps:
        values = [_at(curve, step) for curve in runs]
        known = [value for value in values if value is not None]
        found.append((step, sum(known) / len(known)))
    return found


def _at(curve: tuple[Point, ...], step: int) -> float | None:
    before = [point.accuracy for point in curve if point.step <= step]
    return before[-1] if before else None
