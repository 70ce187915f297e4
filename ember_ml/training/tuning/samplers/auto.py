"""Selection of a sampler by cross-validation on the history."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ember_ml._core.requirements import import_optional
from ember_ml.configs.fields import Count
from ember_ml.registry import register
from ember_ml.training.tuning.samplers.base import Sampler, Search
from ember_ml.training.tuning.samplers.random import RandomSampler
from ember_ml.training.tuning.samplers.tpe import TPESampler
from ember_ml.training.tuning.samplers.warm import (
    MeanScoreSampler,
    MetaModelSampler,
    WarmSampler,
)
from ember_ml.training.tuning.scores import TaskScores, by_task
from ember_ml.training.tuning.space import Params, SearchSpace

BUDGETS = (1, 2, 4)
MAX_FOLDS = 5
LEAST_TRIALS = 4
"""Number of scores that a task needs to count in the cross-validation."""


@register("samplers/auto")
class AutoSampler(Sampler):
    """Selects the meta-model, the mean score or TPE by cross-validation on the history.

    The sources of the history are left out in turn, in at most 5 folds. A sampler's error is the
    mean regret of its first 1, 2 and 4 choices among the trials of a source that it has not seen,
    in standard deviations. TPE, which starts at random, has the error of random choices. TPE also
    takes over after `switch` trials of the task, and if the history has a single other task.

    Args:
        switch: Number of completed trials of the task after which TPE proposes.

    Attributes:
        choice: Name of the sampler that made the last proposal.
        errors: Error of each sampler in the last cross-validation.
    """

    def __init__(self, switch: Count = 24) -> None:
        self.switch = switch
        self.choice = "tpe"
        self.errors: dict[str, float] = {}
        self._warm: dict[str, WarmSampler] = {
            each.name: each for each in (MetaModelSampler(), MeanScoreSampler())
        }
        self._key: tuple[Any, ...] | None = None
        self._best = "tpe"

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the sampler that made the last proposal."""
        return f"auto: {self.choice}"

    def propose(self, search: Search) -> Params:
        """Return the proposal of the selected sampler."""
        done = sum(trial.state == "done" for trial in search.trials)
        self.choice = self._select(search) if done < self.switch else "tpe"
        if self.choice in self._warm:
            return self._warm[self.choice].propose(search)
        return self._local().propose(search)

    def _local(self) -> Sampler:
        """Return TPE; if Optuna is not installed, random search with a warning."""
        try:
            import_optional("optuna", "samplers/tpe")
        except ImportError as error:
            warnings.warn(f"random search replaces TPE: {error}", stacklevel=4)
            self.choice = "random"
            return RandomSampler()
        return TPESampler()

    def _select(self, search: Search) -> str:
        """Return the sampler with the smallest error; the result is kept for the same history."""
        key = (search.space.fingerprint(), tuple(trial.id for trial in search.others))
        if key != self._key:
            weights = {
                name: 1.0 if mode == "max" else -1.0 for name, mode in search.objectives.items()
            }
            self.errors = cross_validate(search.space, by_task(search.others, weights), self._warm)
            self._key = key
            self._best = min(self.errors, key=self.errors.__getitem__, default="tpe")
        return self._best


def cross_validate(
    space: SearchSpace, tasks: Sequence[TaskScores], samplers: Mapping[str, WarmSampler]
) -> dict[str, float]:
    """Return the error of each sampler, and of TPE, on sources that it has not seen.

    Args:
        space: The search space.
        tasks: Standardized scores of the tasks in the history.
        samplers: Samplers by name.

    Returns:
        Mean regrets in standard deviations; empty if the history has fewer than two tasks with at
        least 4 scores.
    """
    tasks = [task for task in tasks if len(task.trials) >= LEAST_TRIALS]
    if len(tasks) < 2:
        return {}
    folds = _folds(tasks)
    errors: dict[str, list[float]] = {name: [] for name in (*samplers, "tpe")}
    for held_out in folds:
        known = [task for task in tasks if task not in held_out]
        models = {name: each.model(space) for name, each in samplers.items()}
        for model in models.values():
            model.fit(known)
        for task in held_out:
            params = [trial.params for trial in task.trials]
            for name, model in models.items():
                predictions = model.predict(params, task.trials[0].meta)[0]
                errors[name].append(regret(predictions, task.values))
            errors["tpe"].append(random_regret(task.values))
    return {name: math.fsum(values) / len(values) for name, values in errors.items()}


def _folds(tasks: Sequence[TaskScores]) -> list[list[TaskScores]]:
    """Return groups of tasks: those of one source, or of several if there are many sources."""
    sources = sorted({task.source for task in tasks})
    if len(sources) < 2:  # the tasks of a single source
        return [[task] for task in tasks][:MAX_FOLDS]
    count = min(MAX_FOLDS, len(sources))
    return [
        [task for task in tasks if sources.index(task.source) % count == fold]
        for fold in range(count)
    ]


def regret(predictions: Sequence[float], scores: Sequence[float]) -> float:
    """Return the mean regret of the best predicted 1, 2 and 4 choices.

    Args:
        predictions: Predicted scores.
        scores: Actual scores.
    """
    order = sorted(range(len(scores)), key=lambda at: -predictions[at])
    best = max(scores)
    gaps = [best - max(scores[at] for at in order[:budget]) for budget in BUDGETS]
    return math.fsum(gaps) / len(gaps)


def random_regret(scores: Sequence[float]) -> float:
    """Return the expected regret of 1, 2 and 4 random choices.

    Args:
        scores: Actual scores.
    """
    ordered, count, gaps = sorted(scores), len(scores), []
    for budget in BUDGETS:
        expected = math.fsum(
            score * math.comb(at, budget - 1) for at, score in enumerate(ordered)
        ) / math.comb(count, budget)
        gaps.append(ordered[-1] - expected)
    return math.fsum(gaps) / len(gaps)
