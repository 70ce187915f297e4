"""Scores of trials that are comparable between tasks."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ember_ml.training.tuning.trial import Trial

SMALLEST_STD = 1e-6
"""Standard deviation below which the scores of a task are equal."""


@dataclass
class TaskScores:
    """Completed trials of a task with their standardized scores; higher is better."""

    task: str
    source: str
    trials: list[Trial] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    """Standardized scores."""
    std: float = 1.0
    """Standard deviation of the scores."""


def weights_of(objectives: Mapping[str, str], rng: random.Random) -> dict[str, float]:
    """Return a factor for each objective: its sign, and a random weight if there are several.

    Args:
        objectives: "min" or "max" for each objective.
        rng: Source of random numbers. Each proposal draws other weights, and so aims at another
            part of the Pareto front.
    """
    draws = [-math.log(1.0 - rng.random()) for _ in objectives]
    total = sum(draws)
    shares = [draw / total for draw in draws] if len(draws) > 1 else [1.0]
    return {
        name: share if mode == "max" else -share
        for (name, mode), share in zip(objectives.items(), shares, strict=True)
    }


def by_task(trials: Sequence[Trial], weights: Mapping[str, float]) -> list[TaskScores]:
    """Return the completed trials of each task with scores of mean 0 and standard deviation 1.

    Tasks with fewer than two different scores are left out. Several objectives are standardized
    one by one, and added with their weights.

    Args:
        trials: Trials of any tasks.
        weights: Factor on each objective, from `weights_of`.
    """
    groups: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.state == "done":
            groups[trial.task].append(trial)
    tasks = []
    for name, group in groups.items():
        scores, std = combined(group, weights)
        if std > SMALLEST_STD:
            tasks.append(TaskScores(name, group[0].source, group, scores, std))
    return tasks


def combined(group: Sequence[Trial], weights: Mapping[str, float]) -> tuple[list[float], float]:
    """Return the standardized scores of trials of one task, and the deviation of the raw scores.

    Args:
        group: Completed trials of the task.
        weights: Factor on each objective.
    """
    if len(weights) == 1:
        ((name, sign),) = weights.items()
        return standardized([sign * trial.scores[name] for trial in group])
    parts = [
        [weight * each for each in standardized([trial.scores[name] for trial in group])[0]]
        for name, weight in weights.items()
    ]
    return standardized([sum(values) for values in zip(*parts, strict=True)])


def standardized(values: Sequence[float]) -> tuple[list[float], float]:
    """Return values with mean 0 and standard deviation 1, and their standard deviation.

    Args:
        values: At least one number.
    """
    mean = math.fsum(values) / len(values)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    if std <= SMALLEST_STD:
        return [0.0 for _ in values], 0.0
    return [(value - mean) / std for value in values], std
