"""The base class of samplers, and what they see of a search."""

from __future__ import annotations

import json
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ember_ml.training.tuning.space import Params, SearchSpace
from ember_ml.training.tuning.trial import Trial


@dataclass
class Search:
    """What a sampler sees of a search.

    Args:
        space: The search space.
        objectives: "min" or "max" for each objective; the first is the metric.
        trials: Trials of the task, in the order of their numbers, also those that are running.
        others: Completed trials of other tasks.
        meta: Meta-features of the task.
        source: Name of the task's source.
        seed: Seed of all random draws of this proposal.
        candidates: The only choices, for a search over a table of scores. Default: the whole space.
    """

    space: SearchSpace
    objectives: dict[str, str]
    trials: Sequence[Trial] = ()
    others: Sequence[Trial] = ()
    meta: Mapping[str, float] = field(default_factory=dict)
    source: str = "default"
    seed: int = 0
    candidates: Sequence[Params] | None = None

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def tried(self) -> set[str]:
        """Return the keys of the values that the task has tried already."""
        return {key_of(trial.params) for trial in self.trials}

    def untried(self, count: int) -> list[Params]:
        """Return values that the task has not tried: the candidates left, or random draws.

        Args:
            count: Number of random draws.
        """
        pool = self.candidates
        if pool is None:
            pool = [self.space.sample(self.rng) for _ in range(count)]
        tried = self.tried()
        return [params for params in pool if key_of(params) not in tried] or list(pool)


def key_of(params: Mapping[str, Any]) -> str:
    """Return a string that is equal for equal values.

    Args:
        params: Values by dotted key.
    """
    return json.dumps(params, sort_keys=True)


class Sampler(ABC):
    """Proposes the values of the next trial."""

    name = ""
    """Name that is stored with a trial."""

    @abstractmethod
    def propose(self, search: Search) -> Params:
        """Return values by dotted key.

        Args:
            search: The space, the trials so far and the source of random numbers.
        """


def distance(row: Sequence[float], other: Sequence[float]) -> float:
    """Return the squared Euclidean distance of two encoded values.

    Args:
        row: Result of `SearchSpace.encode`.
        other: Another one.
    """
    return sum((a - b) ** 2 for a, b in zip(row, other, strict=True))


def nearest(search: Search, params: Mapping[str, Any]) -> Params:
    """Return the candidate that is nearest to some values and not tried yet.

    Args:
        search: Search with candidates.
        params: Values by dotted key.
    """
    target = search.space.encode(params)
    return min(search.untried(0), key=lambda each: distance(search.space.encode(each), target))
