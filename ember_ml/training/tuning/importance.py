"""Importance of hyperparameters."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.meta_model import MetaModel
from ember_ml.training.tuning.scores import TaskScores, standardized
from ember_ml.training.tuning.space import SearchSpace

DRAWS = 512
LEAST_TRIALS = 8


def importance(
    space: SearchSpace, tasks: Sequence[TaskScores], meta: Mapping[str, float], seed: int = 0
) -> dict[str, float]:
    """Return the share of each hyperparameter in the variance of the predicted score.

    The meta-model is trained on all scores. The importance of a key is its total-effect Sobol index
    on the model: the mean squared change of the prediction when only this key is drawn again,
    divided by twice the variance of the predictions. The indices are normalized to a sum of 1.
    This is the total-effect counterpart of functional ANOVA.

    Args:
        space: The search space.
        tasks: Standardized scores, of one or more tasks.
        meta: Meta-features for which the importance is computed.
        seed: Seed of the model and of the draws.
    """
    count = sum(len(task.trials) for task in tasks)
    if count < LEAST_TRIALS:
        raise TuningError(
            f"explain: needs at least {LEAST_TRIALS} completed trials with different scores, not "
            f"{count}"
        )
    model = MetaModel(space, seed=seed).fit(tasks)
    rng = random.Random(f"importance/{seed}")
    positions = [{key: rng.random() for key in space} for _ in range(DRAWS)]
    base = model.predict([space.at(each) for each in positions], meta)[0]
    variance = standardized(base)[1] ** 2
    effects = {}
    for key in space:
        changed = [space.at({**each, key: rng.random()}) for each in positions]
        others = model.predict(changed, meta)[0]
        squares = math.fsum((a - b) ** 2 for a, b in zip(base, others, strict=True))
        effects[key] = squares / (2.0 * DRAWS * variance) if variance else 0.0
    total = sum(effects.values()) or 1.0
    shares = {key: effect / total for key, effect in effects.items()}
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))
