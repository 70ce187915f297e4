"""Correction of predictions for other tasks by the scores of the task itself."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.backend import use_backend
from ember_ml.training.tuning.samplers.base import Search
from ember_ml.training.tuning.scores import TaskScores, combined
from ember_ml.training.tuning.trial import Trial

VARIANCE, LENGTH, NOISE = 0.5, 1.0, 0.1
"""Of the residual: prior variance, squared length scale and noise variance, all of the
standardized score and the encoded values."""
PRIOR_TRIALS = 4.0
"""Number of trials that the spread of the scores in other tasks counts as."""
FAILED = -2.0
"""Standardized score of a trial that failed."""


@dataclass
class Observed:
    """What the task's own trials say: standardized residuals, and the best standardized score."""

    trials: list[Trial]
    residuals: list[float]
    best: float


def observe(
    search: Search,
    tasks: Sequence[TaskScores],
    weights: Mapping[str, float],
    predictions: Sequence[float],
) -> Observed | None:
    """Return the residuals of the task's trials; None if no trial has a score yet.

    The scale of the scores is not known before a task has many trials. It is the median of other
    tasks, corrected by the spread of the own scores. Running trials have the residual 0, so that
    several processes do not propose the same values.

    Args:
        search: The search.
        tasks: Standardized scores of other tasks.
        weights: Factor on each objective.
        predictions: Predicted standardized score of each trial of the task.
    """
    pairs = list(zip(search.trials, predictions, strict=True))
    scored = [(t, mean) for t, mean in pairs if t.state != "running" and len(t.scores) >= 1]
    scored = [(t, mean) for t, mean in scored if all(name in t.scores for name in weights)]
    if not scored:
        return None
    raw = _raw_scores([trial for trial, _ in scored], weights)
    means = [mean for _, mean in scored]
    scale = _scale(raw, means, tasks, single=len(weights) == 1)
    shift = statistics.fmean(y - scale * mean for y, mean in zip(raw, means, strict=True))
    known = {trial.id: (y - shift) / scale for (trial, _), y in zip(scored, raw, strict=True)}
    residuals = []
    for trial, mean in pairs:
        value = FAILED if trial.state == "failed" else known.get(trial.id, mean)
        residuals.append(value - mean)
    return Observed([trial for trial, _ in pairs], residuals, max(known.values()))


def _raw_scores(trials: Sequence[Trial], weights: Mapping[str, float]) -> list[float]:
    """Return scores of the task's trials, higher is better."""
    if len(weights) == 1:
        ((name, sign),) = weights.items()
        return [sign * trial.scores[name] for trial in trials]
    return combined(trials, weights)[0]


def _scale(
    raw: Sequence[float], means: Sequence[float], tasks: Sequence[TaskScores], *, single: bool
) -> float:
    """Return the estimated standard deviation of the task's scores over the whole space."""
    prior = statistics.median(task.std for task in tasks) if tasks and single else 1.0
    count = len(raw) - 1
    if not count:
        return prior
    expected = statistics.pvariance(means) + VARIANCE + NOISE
    own = math.sqrt(statistics.variance(raw) / expected)
    logs = PRIOR_TRIALS * math.log(prior) + count * math.log(max(own, 1e-3 * prior))
    return math.exp(logs / (PRIOR_TRIALS + count))


def expected_improvements(
    search: Search, rows: Sequence[Sequence[float]], means: Sequence[float], observed: Observed
) -> list[float]:
    """Return the expected improvement of candidates over the best score of the task.

    The residual of the predictions is a Gaussian process over the encoded values.

    Args:
        search: The search.
        rows: Encoded candidates.
        means: Predicted standardized score of each candidate.
        observed: Residuals of the task's trials.
    """
    with use_backend("numpy"):
        known = ops.asarray(
            [search.space.encode(trial.params) for trial in observed.trials], dtype="float64"
        )
        points = ops.asarray(list(rows), dtype="float64")
        noise = NOISE * ops.eye(len(known), dtype="float64")
        cross = _kernel(points, known)
        solved = ops.linearalg.solve(_kernel(known, known) + noise, ops.transpose(cross))
        residuals = ops.asarray(observed.residuals, dtype="float64")
        shifts = ops.matmul(ops.transpose(solved), residuals).tolist()
        variances = (VARIANCE - ops.sum(cross * ops.transpose(solved), axis=1)).tolist()
    return [
        _improvement(mean + shift - observed.best, math.sqrt(max(variance, 1e-6)))
        for mean, shift, variance in zip(means, shifts, variances, strict=True)
    ]


def _kernel(rows: Tensor, others: Tensor) -> Tensor:
    differences = ops.expand_dims(rows, 1) - ops.expand_dims(others, 0)
    return VARIANCE * ops.exp(-ops.sum(differences**2, axis=-1) / (2.0 * LENGTH))


def _improvement(gap: float, std: float) -> float:
    """Return E[max(0, gap + std * standard normal)]."""
    u = gap / std
    density = math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    return std * (u * 0.5 * math.erfc(-u / math.sqrt(2.0)) + density)
