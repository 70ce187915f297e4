"""Random search."""

from __future__ import annotations

from ember_ml.registry import register
from ember_ml.training.tuning.samplers.base import Sampler, Search
from ember_ml.training.tuning.space import Params


@register("samplers/random")
class RandomSampler(Sampler):
    """Independent draws from the search space."""

    name = "random"

    def propose(self, search: Search) -> Params:
        """Return a random draw; of a finite set of candidates, one that is not tried yet."""
        pool = search.untried(1)
        return pool[int(search.rng.random() * len(pool))]
