"""Accuracy over difficulty and over training steps."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml.configs.base import Config
from ember_ml.mad.intervals import bootstrap
from ember_ml.mad.report.gather import Report
from ember_ml.mad.scores import setting_of

Points = list[tuple[float, float]]


class Curve(NamedTuple):
    """Mean of several seeds along an axis."""

    mean: Points
    low: Points
    """Lower bounds of the 95 % bootstrap intervals over the seeds; empty with one seed."""
    high: Points
    seeds: dict[int, Points]
    """Points of each seed."""


class Variable(NamedTuple):
    """A field of a task that has several values in a sweep."""

    task: str
    name: str
    lines: dict[str, Curve]
    """Accuracies of each architecture over the values."""


def mean_of(seeds: dict[int, Points], *, hold: bool = False) -> Curve:
    """Return the mean of the points of several seeds.

    Args:
        seeds: (x, accuracy) points of each seed, by increasing x.
        hold: Whether a seed keeps its last value where it has no point, as a learning curve that
            ends early does.

    Example:
        >>> curve = mean_of({0: [(10, 1.0)], 1: [(10, 0.0), (20, 0.5)]}, hold=True)
        >>> curve.mean, curve.low
        ([(10, 0.5), (20, 0.75)], [(10, 0.0), (20, 0.5)])
    """
    mean, low, high = [], [], []
    for x in sorted({x for points in seeds.values() for x, _ in points}):
        values = [y for points in seeds.values() if (y := _at(points, x, hold)) is not None]
        mean.append((x, sum(values) / len(values)))
        if len(seeds) > 1:
            bounds = bootstrap(values)
            low.append((x, bounds[0]))
            high.append((x, bounds[1]))
    return Curve(mean, low, high, seeds)


def _at(points: Points, x: float, hold: bool) -> float | None:
    before = [y for at, y in points if at == x or (hold and at < x)]
    return before[-1] if before else None


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
    """Return the fields in which two settings differ; the seed is not part of a setting."""
    names = [name for name in type(one).model_fields if name != "seed"]
    return [name for name in names if getattr(one, name) != getattr(other, name)]


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
        seeds: dict[int, dict[float, float]] = {}
        for each in report.chosen(architecture, task):
            if _differences(base, each.run.task) in ([], [name]):
                points = seeds.setdefault(each.run.seed, {})
                points[getattr(each.run.task, name)] = each.result.accuracy
        if seeds:
            by_seed = {seed: sorted(points.items()) for seed, points in sorted(seeds.items())}
            lines[architecture] = mean_of(by_seed)
    return Variable(task, name, lines)


def curves(report: Report, task: str) -> dict[str, Curve]:
    """Return the validation accuracy over steps of each architecture, by seed and on average.

    The curves are those of the base setting, with the selected learning rate and weight decay.
    """
    base = base_setting(report, task)
    lines = {}
    for name in report.architectures:
        seeds = {
            each.run.seed: [(float(point.step), point.accuracy) for point in each.result.curve]
            for each in report.chosen(name, task)
            if base is not None and not _differences(base, each.run.task)
        }
        if seeds:
            lines[name] = mean_of(dict(sorted(seeds.items())), hold=True)
    return lines
