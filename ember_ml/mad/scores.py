"""Scores of the architectures, computed from the results of a sweep."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.intervals import Interval, bootstrap, mean_interval, wilson
from ember_ml.mad.store import Done
from ember_ml.mad.store import setting_of as setting_of
from ember_ml.mad.store import task_of as task_of

MAX_PERMUTED = 7
"""Largest number of architectures for which `chance` enumerates all permutations."""
SHARED = ("hidden_size", "norm", "batch_size", "stop_at")
"""Fields that all compared runs have in common."""
AVERAGES = ("micro", "macro")
"""Accuracy over all targets, and averaged over classes."""


class Score(NamedTuple):
    """Mean over seeds with a confidence interval."""

    mean: float
    interval: Interval
    """Bounds of the 95 % confidence interval: over seeds or, with a single seed, over the test
    examples."""
    seeds: int
    """Number of seeds."""


class Cell(NamedTuple):
    """Scores of an architecture on a task."""

    architecture: str
    task: str
    accuracy: Score
    """Accuracy over all targets, averaged over the task's settings."""
    macro_accuracy: Score
    """Accuracy averaged over classes, as in MAD-Lab."""
    chosen: tuple[Done, ...]
    """The best run on the validation split, for each setting and seed."""


def cells(done: Iterable[Done]) -> list[Cell]:
    """Return the scores of every architecture on every task that has results.

    For each setting and seed, the learning rate and weight decay with the best validation accuracy
    are used. A task's score is the mean over its settings.

    Args:
        done: Runs with results, such as `Store.done()`.

    Raises:
        ArgumentError: The runs differ in settings such as the width, so they are not comparable.
    """
    done = list(done)
    _check_comparable([each.run for each in done])
    groups: dict[tuple[str, str], list[Done]] = defaultdict(list)
    for each in done:
        groups[each.run.architecture, task_of(each.run)].append(each)
    return [_cell(name, task, group) for (name, task), group in groups.items()]


def _check_comparable(runs: Sequence[RunConfig]) -> None:
    """Raise an error if runs differ in the settings of models or training."""
    for name in SHARED:
        values = sorted({str(getattr(run, name)) for run in runs})
        if len(values) > 1:
            raise ArgumentError(
                f"the runs have different settings: {name} is {' and '.join(values)}; compare "
                "results of the same settings only"
            )
    steps: dict[str, int] = {}
    for run in runs:
        if steps.setdefault(setting_of(run), run.steps) != run.steps:
            raise ArgumentError(
                f"the runs of {task_of(run)} have different settings: steps is "
                f"{steps[setting_of(run)]} and {run.steps}; compare results of the same settings "
                "only"
            )


def _cell(name: str, task: str, group: Sequence[Done]) -> Cell:
    best: dict[tuple[str, int], Done] = {}
    for each in group:
        key = setting_of(each.run), each.run.seed
        if key not in best or _rank(each) > _rank(best[key]):
            best[key] = each
    chosen = tuple(best.values())
    return Cell(name, task, score(chosen, "micro"), score(chosen, "macro"), chosen)


def _rank(each: Done) -> tuple[float, float]:
    return each.result.validation_accuracy, -each.result.validation_loss


def score(chosen: Sequence[Done], average: str = "micro") -> Score:
    """Return the mean of runs on one task over settings and seeds, with its interval.

    The interval of several seeds is a bootstrap over them. With one seed it is Wilson's, with the
    test examples as observations; it does not cover the variation between seeds.

    Args:
        chosen: Selected runs.
        average: "micro", over all targets, or "macro", averaged over classes.
    """
    values = list(_by_seed(chosen, average).values())
    if len(values) > 1:
        return Score(_mean(values), bootstrap(values), len(values))
    means = [accuracy_of(each, average) for each in chosen]
    intervals = [example_interval(each, average) for each in chosen]
    return Score(_mean(means), mean_interval(means, intervals), 1)


def accuracy_of(each: Done, average: str) -> float:
    """Return the test accuracy of a run.

    Args:
        each: Run with its result.
        average: "micro", over all targets, or "macro", averaged over classes.
    """
    return each.result.accuracy if average == "micro" else each.result.macro_accuracy


def example_interval(each: Done, average: str) -> Interval:
    """Return Wilson's interval of the test accuracy of a run, over its test examples.

    Examples are the observations rather than targets, which depend on each other within a
    sequence.

    Args:
        each: Run with its result.
        average: "micro", over all targets, or "macro", averaged over classes.
    """
    count = len(each.result.targets) or int(getattr(each.run.task, "num_test", 0))
    return wilson(accuracy_of(each, average), count) if count else (0.0, 1.0)


def overall(cells: Sequence[Cell], average: str = "micro") -> Score:
    """Return an architecture's mean over tasks, with its interval.

    The interval is a bootstrap over the seeds if all tasks have the same ones. Otherwise it is
    combined from the intervals of the tasks, which are independent of each other.

    Args:
        cells: The architecture's scores on each task.
        average: "micro", over all targets, or "macro", averaged over classes.
    """
    parts = [_by_seed(cell.chosen, average) for cell in cells]
    means = [_mean(list(part.values())) for part in parts]
    seeds = parts[0].keys()
    shared = set.intersection(*(set(part) for part in parts))
    if len(seeds) > 1 and all(part.keys() == seeds for part in parts):
        by_seed = [_mean([part[seed] for part in parts]) for seed in sorted(seeds)]
        return Score(_mean(means), bootstrap(by_seed), len(by_seed))
    intervals = [score(cell.chosen, average).interval for cell in cells]
    return Score(_mean(means), mean_interval(means, intervals), len(shared))


def _by_seed(chosen: Iterable[Done], average: str) -> dict[int, float]:
    values: dict[int, list[float]] = defaultdict(list)
    for each in chosen:
        values[each.run.seed].append(accuracy_of(each, average))
    return {seed: _mean(part) for seed, part in values.items()}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def common_tasks(cells: Iterable[Cell]) -> list[str]:
    """Return the tasks on which every architecture has a score."""
    cells = list(cells)
    scored = {(cell.architecture, cell.task) for cell in cells}
    names = {cell.architecture for cell in cells}
    tasks = dict.fromkeys(cell.task for cell in cells)
    return [task for task in tasks if all((name, task) in scored for name in names)]


def ranking(cells: Iterable[Cell], average: str = "micro") -> list[tuple[str, Score]]:
    """Return the architectures by their mean over the common tasks, best first.

    Args:
        cells: Scores of the architectures.
        average: "micro", over all targets, or "macro", averaged over classes.
    """
    cells = list(cells)
    common = common_tasks(cells)
    rows: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.task in common:
            rows[cell.architecture].append(cell)
    means = {name: overall(row, average) for name, row in rows.items()}
    return sorted(means.items(), key=lambda item: -item[1].mean)


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Spearman's rank correlation; tied values share their mean rank.

    Returns:
        1 if the orders are the same, -1 if they are opposite, NaN if all values are equal.

    Example:
        >>> from ember_ml.mad.scores import spearman
        >>> spearman([1.0, 2.0, 3.0], [10.0, 20.0, 15.0])
        0.5
    """
    ranks_a, ranks_b = _ranks(a), _ranks(b)
    mean_a, mean_b = _mean(ranks_a), _mean(ranks_b)
    pairs = [(x - mean_a, y - mean_b) for x, y in zip(ranks_a, ranks_b, strict=True)]
    size = math.sqrt(sum(x * x for x, _ in pairs) * sum(y * y for _, y in pairs))
    return sum(x * y for x, y in pairs) / size if size else math.nan


def chance(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the fraction of all orders of `a` that correlate with `b` at least as well as `a`.

    Returns:
        A p-value between 0 and 1; NaN for more than seven values, which have too many orders.

    Example:
        >>> from ember_ml.mad.scores import chance
        >>> chance([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 5.0, 4.0]) == 5 / 120
        True
    """
    correlation = spearman(a, b)
    if len(a) > MAX_PERMUTED or math.isnan(correlation):
        return math.nan
    orders = list(itertools.permutations(a))
    return sum(spearman(order, b) >= correlation - 1e-9 for order in orders) / len(orders)


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
