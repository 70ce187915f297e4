"""What the results of a sweep say of each architecture."""

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
"""The 97.5 % points of Student's t with 1 to 10 degrees of freedom."""
MOST = 7
"""Architectures of which all orders can be tried."""
_Z = 1.959964
"""That of the normal distribution."""


AVERAGES = ("micro", "macro")
"""Over all targets; and the mean over the classes."""


class Score(NamedTuple):
    """A mean over seeds, and how far it can be trusted."""

    mean: float
    interval: float | None
    """Half of the 95 % confidence interval; None if there is one seed alone."""
    seeds: int
    """Of how many."""


class Cell(NamedTuple):
    """An architecture on a task."""

    architecture: str
    task: str
    accuracy: Score
    """Over all targets: the mean over the task's settings."""
    macro_accuracy: Score
    """The mean over the classes, as MAD-Lab measures it."""
    chosen: tuple[Done, ...]
    """Of each setting and seed, the run that was best on the validation split."""


def setting_of(run: RunConfig) -> str:
    """What is the same in the runs among which one is chosen: the task with all its sizes."""
    sizes = {name: value for name, value in run.task.to_dict().items() if name != "seed"}
    return json.dumps(sizes, sort_keys=True)


def task_of(run: RunConfig) -> str:
    """The name of its task."""
    return str(run.task.component.partition("/")[2])


def cells(done: Iterable[Done]) -> list[Cell]:
    """Every architecture on every task that has results.

    Of each setting and seed, the learning rate and weight decay that were best on the validation
    split count. A task's score is the mean over its settings.
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
    """The mean of the seeds' values, with its confidence interval.

    Example:
        >>> from ember_ml.mad.scores import score
        >>> round(score([0.9, 1.0, 0.8]).interval, 3)
        0.248
    """
    count = len(values)
    mean = _mean(values)
    if count < 2:
        return Score(mean, None, count)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    return Score(mean, _quantile(count - 1) * spread / math.sqrt(count), count)


def _quantile(freedom: int) -> float:
    """The 97.5 % point of Student's t; to within 0.002 where it is that of a series."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    first = (_Z**3 + _Z) / 4
    second = (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96
    return _Z + first / freedom + second / freedom**2


def overall(found: Sequence[Cell], average: str = "micro") -> Score:
    """The mean of an architecture's tasks; its interval is over the seeds that all of them have.

    Args:
        found: the architecture on each task.
        average: "micro", over all targets; or "macro", the mean over the classes.
    """
    parts = [_by_seed(cell.chosen, average) for cell in found]
    whole = [_mean(list(part.values())) for part in parts]
    seeds = sorted(set.intersection(*(set(part) for part in parts)))
    if not seeds:
        return Score(_mean(whole), None, 0)
    return score([_mean([part[seed] for part in parts]) for seed in seeds])._replace(
        mean=_mean(whole)
    )


def _by_seed(chosen: Iterable[Done], average: str) -> dict[int, float]:
    name = "accuracy" if average == "micro" else "macro_accuracy"
    values: dict[int, list[float]] = defaultdict(list)
    for each in chosen:
        values[each.run.seed].append(getattr(each.result, name))
    return {seed: _mean(part) for seed, part in values.items()}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def common_tasks(found: Iterable[Cell]) -> list[str]:
    """The tasks of which every architecture with any result has one."""
    found = list(found)
    there = {(cell.architecture, cell.task) for cell in found}
    names = {cell.architecture for cell in found}
    tasks = dict.fromkeys(cell.task for cell in found)
    return [task for task in tasks if all((name, task) in there for name in names)]


def ranking(found: Iterable[Cell], average: str = "micro") -> list[tuple[str, Score]]:
    """Architectures by their mean over the tasks that all of them have, the best first."""
    found = list(found)
    common = common_tasks(found)
    rows: dict[str, list[Cell]] = defaultdict(list)
    for cell in found:
        if cell.task in common:
            rows[cell.architecture].append(cell)
    means = {name: overall(row, average) for name, row in rows.items()}
    return sorted(means.items(), key=lambda item: -item[1].mean)


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """How far two orders agree: 1 if they are the same, -1 if opposite; ties share their ranks.

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
    """How often an order drawn by lot agrees with b as well as a does, or better.

    All orders are tried, which are too many above seven: then it is not a number.

    Example:
        >>> from ember_ml.mad.scores import chance
        >>> chance([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 5.0, 4.0]) == 5 / 120
        True
    """
    found = spearman(a, b)
    if len(a) > MOST or math.isnan(found):
        return math.nan
    orders = list(itertools.permutations(a))
    return sum(spearman(order, b) >= found - 1e-9 for order in orders) / len(orders)


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
