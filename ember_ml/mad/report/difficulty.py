"""Accuracy over difficulty and over training steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ember_ml.configs.base import Config
from ember_ml.mad.report.gather import Report
from ember_ml.mad.run import Point
from ember_ml.mad.scores import setting_of

Points = list[tuple[float, float]]


class Variable(NamedTuple):
    """A field of a task that has several values in a sweep."""

    task: str
    name: str
    lines: dict[str, Points]
    """(value, accuracy) points of each architecture."""


def base_setting(report: Report, task: str) -> Config | None:
    """Return the setting that differs from most others in one field; usually the default."""
    configs = _settings(report, task)

    def rank(config: Config) -> tuple[int, int]:
        neighbors = sum(len(_differences(config, other)) == 1 for other in configs)
        return neighbors, _num_defaults(config)

    return max(configs, key=rank) if configs else None


def _settings(report: Report, task: str) -> list[Config]:
    runs = [each.run for each in report.chosen(task=task)]
    return list({setting_of(run): run.task for run in runs}.values())


def _differences(one: Config, other: Config) -> list[str]:
    return [name for name in type(one).model_fields if getattr(one, name) != getattr(other, name)]


def _num_defaults(config: Config) -> int:
    fields = type(config).model_fields
    return sum(getattr(config, name) == field.default for name, field in fields.items())


def variables(report: Report) -> list[Variable]:
    """Return the fields that make each task harder, with the accuracies along them."""
    fields = []
    for task in report.tasks:
        base = base_setting(report, task)
        if base is None:
            continue
        changed = [_differences(base, other) for other in _settings(report, task)]
        names = {names[0] for names in changed if len(names) == 1}
        for name in type(base).model_fields:
            if name in names and _is_number(getattr(base, name)):
                fields.append(_variable(report, task, name, base))
    return fields


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _variable(report: Report, task: str, name: str, base: Config) -> Variable:
    lines = {}
    for architecture in report.architectures:
        values: dict[float, list[float]] = {}
        for each in report.chosen(architecture, task):
            if _differences(base, each.run.task) in ([], [name]):
                values.setdefault(getattr(each.run.task, name), []).append(each.result.accuracy)
        if values:
            lines[architecture] = [(x, sum(y) / len(y)) for x, y in sorted(values.items())]
    return Variable(task, name, lines)


def curves(report: Report, task: str) -> dict[str, Points]:
    """Return the validation accuracy over steps of each architecture, averaged over seeds.

    The curves are those of the base setting, with the selected learning rate and weight decay.
    """
    base = base_setting(report, task)
    lines = {}
    for name in report.architectures:
        runs = [each for each in report.chosen(name, task) if each.run.task == base]
        if runs:
            lines[name] = mean_curve([each.result.curve for each in runs])
    return lines


def mean_curve(runs: Sequence[tuple[Point, ...]]) -> Points:
    """Return the mean accuracy of several curves; one that ends early keeps its last value.

    Example:
        >>> from ember_ml.mad.run import Point
        >>> short, longer = [Point(10, 1.0, 1.0, 2.0)], [Point(10, 1.0, 0.0, 2.0)]
        >>> mean_curve([(*short,), (*longer, Point(20, 1.0, 0.5, 2.0))])
        [(10, 0.5), (20, 0.75)]
    """
    points: Points = []
    for step in sorted({point.step for curve in runs for point in curve}):
        values = [value for curve in runs if (value := _at(curve, step)) is not None]
        points.append((step, sum(values) / len(values)))
    return points


def _at(curve: tuple[Point, ...], step: int) -> float | None:
    before = [point.accuracy for point in curve if point.step <= step]
    return before[-1] if before else None
