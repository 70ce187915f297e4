"""Pareto fronts: trials that are best in some trade-off of several objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ember_ml.training.tuning.trial import Trial


def pareto_front(trials: Sequence[Trial], objectives: Mapping[str, str]) -> list[Trial]:
    """Return the trials that no other trial dominates, sorted by the first objective.

    A trial dominates another one if it is at least as good in all objectives and better in one.

    Args:
        trials: Completed trials.
        objectives: "min" or "max" for each objective.
    """
    signs = {name: 1.0 if mode == "max" else -1.0 for name, mode in objectives.items()}
    points = [tuple(sign * trial.scores[name] for name, sign in signs.items()) for trial in trials]
    front = [
        trial
        for trial, point in zip(trials, points, strict=True)
        if not any(_dominates(other, point) for other in points)
    ]
    first = next(iter(objectives))
    return sorted(front, key=lambda trial: -signs[first] * trial.scores[first])


def _dominates(point: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return point != other and all(a >= b for a, b in zip(point, other, strict=True))
