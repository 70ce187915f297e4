"""Paired comparison of architectures: which ones can be told apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ember_ml.mad.intervals import Interval, Z, difference_interval, mean_interval, t_interval
from ember_ml.mad.scores import (
    Cell,
    Score,
    accuracy_of,
    common_tasks,
    example_interval,
    ranking,
    setting_of,
)
from ember_ml.mad.store import Done

Results = dict[tuple[str, str], dict[int, Done]]
"""(task, setting) -> seed -> selected run."""


class Comparison(NamedTuple):
    """Difference between two architectures on the same seeds and examples."""

    difference: float
    """Mean accuracy of the first one minus that of the second one."""
    interval: Interval
    """95 % confidence interval of the difference."""

    @property
    def tied(self) -> bool:
        """Whether the two cannot be told apart: the interval contains zero."""
        return self.interval[0] <= 0.0 <= self.interval[1]


class Standing(NamedTuple):
    """Place of an architecture in a ranking."""

    architecture: str
    score: Score
    first: int
    """Best rank it may have: one more than the number of architectures that are better."""
    last: int
    """Worst rank it may have."""
    tied_with: tuple[str, ...]
    """Architectures that cannot be told apart from it."""

    @property
    def rank(self) -> str:
        """Rank as text, such as "1" or, if tied, "2-3"."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def compare(one: Iterable[Cell], other: Iterable[Cell], average: str = "micro") -> Comparison:
    """Compare two architectures on the tasks, settings and seeds for which both have results.

    With several seeds, the differences by seed are averaged over the tasks, and the interval is
    Student's: unlike the bootstrap it is not too narrow for two or three seeds. With one seed,
    the test examples are the observations. Results without counts per example are compared as if
    they were tested on different examples.

    Args:
        one: Scores of the first architecture.
        other: Scores of the second architecture.
        average: "micro", over all targets, or "macro", averaged over classes.
    """
    first, second = _results(one), _results(other)
    keys = [key for key in first if key in second]
    seeds = [set(first[key]) & set(second[key]) for key in keys]
    shared = sorted(set.intersection(*seeds)) if seeds else []
    if not shared:
        return Comparison(math.nan, (-1.0, 1.0))
    differences = [_difference(first, second, keys, seed, average) for seed in shared]
    mean = math.fsum(differences) / len(differences)
    if len(shared) > 1:
        return Comparison(mean, t_interval(differences))
    pairs = [(key[0], first[key][shared[0]], second[key][shared[0]]) for key in keys]
    return Comparison(mean, _by_example(pairs, average))


def _results(cells: Iterable[Cell]) -> Results:
    results: Results = {}
    for cell in cells:
        for each in cell.chosen:
            key = cell.task, setting_of(each.run)
            results.setdefault(key, {})[each.run.seed] = each
    return results


def _difference(
    first: Results, second: Results, keys: Sequence[tuple[str, str]], seed: int, average: str
) -> float:
    """Return the difference on a seed: the mean over tasks of the mean over settings."""
    return _mean_over_tasks(
        (key[0], accuracy_of(first[key][seed], average) - accuracy_of(second[key][seed], average))
        for key in keys
    )


def _mean_over_tasks(values: Iterable[tuple[str, float]]) -> float:
    by_task: dict[str, list[float]] = {}
    for task, value in values:
        by_task.setdefault(task, []).append(value)
    means = [math.fsum(part) / len(part) for part in by_task.values()]
    return math.fsum(means) / len(means)


def _by_example(pairs: Sequence[tuple[str, Done, Done]], average: str) -> Interval:
    """Return the interval of the mean difference, with test examples as observations."""
    weights = _weights([task for task, _, _ in pairs])
    paired = all(a.result.targets and a.result.targets == b.result.targets for _, a, b in pairs)
    if average == "micro" and paired:
        parts = [_paired_difference(a, b) for _, a, b in pairs]
        mean = math.fsum(w * value for w, (value, _) in zip(weights, parts, strict=True))
        variance = math.fsum(w * w * var for w, (_, var) in zip(weights, parts, strict=True))
        return mean - Z * math.sqrt(variance), mean + Z * math.sqrt(variance)
    return _unpaired(pairs, average)


def _weights(tasks: Sequence[str]) -> list[float]:
    """Return the weight of each setting: equal for all tasks, and for the settings of a task."""
    return [1 / (len(set(tasks)) * tasks.count(task)) for task in tasks]


def _paired_difference(one: Done, other: Done) -> tuple[float, float]:
    """Return the difference of two accuracies, and its variance over the test examples."""
    targets = np.asarray(one.result.targets, dtype=float)
    wins = np.asarray(one.result.correct, dtype=float) - np.asarray(
        other.result.correct, dtype=float
    )
    differences = wins / targets.mean()  # their mean is the difference of the accuracies
    count = len(differences)
    variance = float(differences.var(ddof=1)) / count if count > 1 else math.inf
    return float(differences.mean()), variance


def _unpaired(pairs: Sequence[tuple[str, Done, Done]], average: str) -> Interval:
    one, one_interval = _mean([a for _, a, _ in pairs], average)
    other, other_interval = _mean([b for _, _, b in pairs], average)
    return difference_interval(one, one_interval, other, other_interval)


def _mean(runs: Sequence[Done], average: str) -> tuple[float, Interval]:
    means = [accuracy_of(each, average) for each in runs]
    intervals = [example_interval(each, average) for each in runs]
    return math.fsum(means) / len(means), mean_interval(means, intervals)


def standings(cells: Iterable[Cell], average: str = "micro") -> list[Standing]:
    """Return the architectures by their mean over the common tasks, best first, with ties.

    Args:
        cells: Scores of the architectures.
        average: "micro", over all targets, or "macro", averaged over classes.
    """
    cells = list(cells)
    common = common_tasks(cells)
    ranked = ranking(cells, average)
    rows = {
        name: [cell for cell in cells if cell.architecture == name and cell.task in common]
        for name, _ in ranked
    }
    return [_standing(name, score, rows, average) for name, score in ranked]


def _standing(name: str, score: Score, rows: dict[str, list[Cell]], average: str) -> Standing:
    pairs = {other: compare(rows[name], rows[other], average) for other in rows if other != name}
    better = sum(pair.difference < 0 for pair in pairs.values() if not pair.tied)
    worse = sum(pair.difference > 0 for pair in pairs.values() if not pair.tied)
    tied = tuple(other for other, pair in pairs.items() if pair.tied)
    return Standing(name, score, 1 + better, len(rows) - worse, tied)
