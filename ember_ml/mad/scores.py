"""What the results of a sweep say of each architecture."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.store import Done

_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""The 97.5 % points of Student's t with 1 to 10 degrees of freedom; beyond, the normal one."""


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
    return json.dumps(run.task.to_dict(), sort_keys=True)


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
    by_seed: dict[int, list[Done]] = defaultdict(list)
    for (_, seed), each in best.items():
        by_seed[seed].append(each)
    micro = [_mean([each.result.accuracy for each in part]) for part in by_seed.values()]
    macro = [_mean([each.result.macro_accuracy for each in part]) for part in by_seed.values()]
    return Cell(name, task, score(micro), score(macro), tuple(best.values()))


def _rank(each: Done) -> tuple[float, float]:
    return each.result.validation_accuracy, -each.result.loss


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
    quantile = _T[count - 2] if count - 2 < len(_T) else 1.96
    return Score(mean, quantile * spread / math.sqrt(count), count)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def ranking(found: Iterable[Cell], tasks: Sequence[str]) -> list[tuple[str, float]]:
    """Architectures by their mean accuracy over the tasks that all of them have, the best first."""
    table: dict[str, dict[str, float]] = defaultdict(dict)
    for cell in found:
        table[cell.architecture][cell.task] = cell.accuracy.mean
    common = [task for task in tasks if all(task in row for row in table.values())]
    means = {name: _mean([row[t] for t in common]) for name, row in table.items() if common}
    return sorted(means.items(), key=lambda item: -item[1])


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


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
