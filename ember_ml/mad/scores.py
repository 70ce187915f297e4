"""Scores of the architectures, computed from the results of a sweep."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.store import Done

_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % quantiles of Student's t distribution with 1 to 10 degrees of freedom."""
_Z = 1.959964
"""97.5 % quantile of the normal distribution."""
MAX_PERMUTED = 7
"""Largest number of architectures for which `chance` tries all orders."""
AVERAGES = ("micro", "macro")
"""Accuracy over all targets, and averaged over classes."""


class Score(NamedTuple):
    """Mean over seeds with a confidence interval."""

    mean: float
    interval: float | None
    """Half the width of the 95 % confidence interval; None with a single seed."""
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


def setting_of(run: RunConfig) -> str:
    """Return the config of a run's task without the seed, as JSON."""
    sizes = {name: value for name, value in run.task.to_dict().items() if name != "seed"}
    return json.dumps(sizes, sort_keys=True)


def task_of(run: RunConfig) -> str:
    """Return the name of a run's task."""
    return run.task.component.partition("/")[2]


def cells(done: Iterable[Done]) -> list[Cell]:
    """Return the scores of every architecture on every task that has results.

    For each setting and seed, the learning rate and weight decay with the best validation accuracy
    count. A task's score is the mean over its settings.

    Args:
        done: Runs with results, such as `Store.done()`.
    """
    groups: dict[tuple[str, str], list[Done]] = defaultdict(list)
    for each in done:
        groups[each.run.architecture, task_of(each.run)].append(each)
    return [_cell(name, task, group) for (name, task), group in groups.items()]


def _cell(name: str, task: str, group: Sequence[Done]) -> Cell:
    best: dict[tuple[str, int], Done] = {}
    for each in group:
        key = setting_of(each.run), each.run.seed
        if key not in best or _rank(each) > _rank(best[key]):
            best[key] = each
    chosen = tuple(best.values())
    micro, macro = (list(_by_seed(chosen, average).values()) for average in AVERAGES)
    return Cell(name, task, score(micro), score(macro), chosen)


def _rank(each: Done) -> tuple[float, float]:
    return each.result.validation_accuracy, -each.result.validation_loss


def score(values: Sequence[float]) -> Score:
    """Return the mean of the values of several seeds, with its confidence interval.

    Example:
        >>> from ember_ml.mad.scores import score
        >>> round(score([0.9, 1.0, 0.8]).interval, 3)
        0.248
    """
    count = len(values)
    mean = _mean(values)
    if count < 2:
        return Score(mean, None, count)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    return Score(mean, _t_quantile(count - 1) * deviation / math.sqrt(count), count)


def _t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t; the series is accurate to 0.002."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    first = (_Z**3 + _Z) / 4
    second = (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96
    return _Z + first / freedom + second / freedom**2


def overall(cells: Sequence[Cell], average: str = "micro") -> Score:
    """Return an architecture's mean over tasks; the interval is over the seeds all tasks share.

    Args:
        cells: The architecture's scores on each task.
        average: "micro", over all targets, or "macro", averaged over classes.
    """
    parts = [_by_seed(cell.chosen, average) for cell in cells]
    mean = _mean([_mean(list(part.values())) for part in parts])
    seeds = sorted(set.intersection(*(set(part) for part in parts)))
    if not seeds:
        return Score(mean, None, 0)
    return score([_mean([part[seed] for part in parts]) for seed in seeds])._replace(mean=mean)


def _by_seed(chosen: Iterable[Done], average: str) -> dict[int, float]:
    name = "accuracy" if average == "micro" else "macro_accuracy"
    values: dict[int, list[float]] = defaultdict(list)
    for each in chosen:
        values[each.run.seed].append(getattr(each.result, name))
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
