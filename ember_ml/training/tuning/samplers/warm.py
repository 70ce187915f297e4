"""Samplers that start from the history of other tasks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ember_ml.registry import register
from ember_ml.training.tuning.meta_model import MetaModel
from ember_ml.training.tuning.samplers.base import Sampler, Search, distance, key_of
from ember_ml.training.tuning.samplers.random import RandomSampler
from ember_ml.training.tuning.samplers.residual import expected_improvements, observe
from ember_ml.training.tuning.scores import TaskScores, by_task, weights_of
from ember_ml.training.tuning.space import Params, SearchSpace

RANDOM_DRAWS, NEIGHBORS, FROM_HISTORY = 200, 50, 200
"""Numbers of proposals that are compared: random ones, neighbors of the task's best trials, and
the best ones of other tasks."""


class ScoreModel(Protocol):
    """Model of the standardized score."""

    def fit(self, tasks: Sequence[TaskScores]) -> Any:
        """Learn from other tasks."""

    def predict(
        self, params: Sequence[Mapping[str, Any]], meta: Mapping[str, float]
    ) -> tuple[list[float], list[float]]:
        """Return expected scores and their standard deviations."""


class MeanScore:
    """Mean standardized score of values in the tasks of the history.

    Values that no task has tried get the mean of similar ones, weighted by a narrow Gaussian
    kernel, which tends to 0 far away from all of them.

    Args:
        space: The search space.
        width: Squared width of the kernel over the encoded values.
        prior: Weight of a score of 0.
    """

    def __init__(self, space: SearchSpace, width: float = 0.02, prior: float = 0.5) -> None:
        self.space, self.width, self.prior = space, width, prior
        self._known: dict[str, tuple[list[float], float, int]] = {}

    def fit(self, tasks: Sequence[TaskScores]) -> MeanScore:
        """Add the scores of tasks, and return the model.

        Args:
            tasks: Standardized scores.
        """
        for task in tasks:
            for trial, score in zip(task.trials, task.values, strict=True):
                key = key_of(trial.params)
                row, total, count = self._known.get(key, ([], 0.0, 0))
                row = row or self.space.encode(trial.params)
                self._known[key] = (row, total + score, count + 1)
        return self

    def predict(
        self, params: Sequence[Mapping[str, Any]], meta: Mapping[str, float]
    ) -> tuple[list[float], list[float]]:
        """Return the mean scores, and the weight of the prior as uncertainty.

        Args:
            params: Values by dotted key, for each prediction.
            meta: Ignored.
        """
        means, stds = [], []
        for each in params:
            row, total, weight = self.space.encode(each), 0.0, self.prior
            for other, score, count in self._known.values():
                near = math.exp(-distance(row, other) / (2.0 * self.width))
                total, weight = total + near * score, weight + near * count
            means.append(total / weight)
            stds.append(math.sqrt(self.prior / weight))
        return means, stds


class WarmSampler(Sampler):
    """Base class of samplers that predict scores from the history of other tasks.

    The first proposal has the best predicted score. Later ones have the largest expected
    improvement, with the predictions corrected by the scores of the task itself. Without a history
    of other tasks it draws at random.
    """

    def __init__(self) -> None:
        self._cache: tuple[tuple[Any, ...], ScoreModel] | None = None

    @abstractmethod
    def model(self, space: SearchSpace) -> ScoreModel:
        """Return the model of the score, not trained yet."""

    def propose(self, search: Search) -> Params:
        """Return the most promising values."""
        weights = weights_of(search.objectives, search.rng)
        tasks = by_task(search.others, weights)
        if not tasks:
            return RandomSampler().propose(search)
        model = self._fitted(search, tasks, weights)
        pool = candidates(search, tasks)
        predicted = model.predict(pool, search.meta)
        own = [trial.params for trial in search.trials]
        means = model.predict(own, search.meta)[0] if own else []
        observed = observe(search, tasks, weights, means)
        values = predicted[0]
        if observed is not None:
            rows = [search.space.encode(params) for params in pool]
            values = expected_improvements(search, rows, predicted, observed)
        return pool[max(range(len(pool)), key=values.__getitem__)]

    def _fitted(
        self, search: Search, tasks: Sequence[TaskScores], weights: Mapping[str, float]
    ) -> ScoreModel:
        """Return the trained model, which is kept while the history of other tasks is the same."""
        ids = tuple(trial.id for task in tasks for trial in task.trials)
        key = (search.space.fingerprint(), ids, tuple(weights.items()))
        if self._cache is None or self._cache[0] != key:
            model = self.model(search.space)
            model.fit(tasks)
            self._cache = (key, model)
        return self._cache[1]


@register("samplers/mean-score")
class MeanScoreSampler(WarmSampler):
    """Starts with the values that have the best mean score in other tasks."""

    name = "mean-score"

    def __init__(self) -> None:
        super().__init__()

    def model(self, space: SearchSpace) -> ScoreModel:
        """Return the mean score of the history."""
        return MeanScore(space)


@register("samplers/meta-model")
class MetaModelSampler(WarmSampler):
    """Starts with the values that an ensemble of networks predicts to be best.

    Args:
        uses_meta: Whether the networks see the meta-features of the tasks.
        seed: Seed of the networks.
    """

    name = "meta-model"

    def __init__(self, uses_meta: bool = True, seed: int = 0) -> None:
        super().__init__()
        self.uses_meta, self.seed = uses_meta, seed

    def model(self, space: SearchSpace) -> ScoreModel:
        """Return an ensemble of networks."""
        return MetaModel(space, uses_meta=self.uses_meta, seed=self.seed)


def candidates(search: Search, tasks: Sequence[TaskScores]) -> list[Params]:
    """Return the proposals to compare: values that the task has not tried.

    Args:
        search: The search.
        tasks: Standardized scores of other tasks.
    """
    pool = search.untried(RANDOM_DRAWS)
    if search.candidates is not None:
        return pool
    scored = [
        (score, trial.params)
        for task in tasks
        for trial, score in zip(task.trials, task.values, strict=True)
    ]
    scored.sort(key=lambda pair: -pair[0])
    pool += [params for _, params in scored[:FROM_HISTORY]]
    mode = next(iter(search.objectives.items()))
    done = [trial for trial in search.trials if trial.state == "done"]
    done.sort(key=lambda trial: trial.scores[mode[0]], reverse=mode[1] == "max")
    for trial in done[:2]:
        pool += [search.space.near(trial.params, search.rng) for _ in range(NEIGHBORS // 2)]
    tried = search.tried()
    distinct = {key_of(params): params for params in pool}
    return [params for key, params in distinct.items() if key not in tried] or pool
