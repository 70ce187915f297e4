"""Changes of hyperparameters in population-based training."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from ember_ml.training.tuning.ranges import Choice
from ember_ml.training.tuning.space import Params, SearchSpace

RESAMPLE = 0.25
"""Probability of drawing a hyperparameter from its whole range."""
SHIFT = 0.15
"""Change of a number, as a fraction of its range; on a logarithmic scale for such a range."""


def explore(space: SearchSpace, params: Mapping[str, Any], rng: random.Random) -> Params:
    """Return changed hyperparameters: each number is shifted, or drawn again.

    A number moves up or down by 0.15 of its range. A choice stays, unless it is drawn again.

    Args:
        space: The search space.
        params: Values by dotted key.
        rng: Source of random numbers.
    """
    positions = {}
    for key, entry in space.items():
        drawn, resample, up = rng.random(), rng.random() < RESAMPLE, rng.random() < 0.5
        if resample or key not in params:
            positions[key] = drawn
        elif isinstance(entry, Choice):
            positions[key] = (entry.index(params[key]) + 0.5) / len(entry.values)
        else:
            moved = entry.encode(params[key])[0] + (SHIFT if up else -SHIFT)
            positions[key] = min(1.0, max(0.0, moved))
    return space.at(positions)
