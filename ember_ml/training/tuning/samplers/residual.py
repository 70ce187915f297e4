"""Correction of predictions for other tasks by the scores of the task itself."""

from __future__ import annotations

import itertools
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
"""Of the residual before there is data: variance and squared length scale; variance of the noise.
The units are those of the standardized score and of the encoded values."""
VARIANCES, LENGTHS = (0.5, 1.0, 2.0, 5.0, 10.0), (0.1, 0.3, 1.0)
"""Values among which the residuals of the task decide."""
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
    search: Search,
    rows: Sequence[Sequence[float]],
    predictions: tuple[Sequence[float], Sequence[float]],
    observed: Observed,
) -> list[float]:
    """Return the expected improvement of candidates over the best score of the task.

    The residual of the predictions is a Gaussian process over the encoded values. Its variance at a
    candidate is increased by that of the prediction itself.

    Args:
        search: The search.
        rows: Encoded candidates.
        predictions: Predicted standardized scores of the candidates, and their standard deviations.
        observed: Residuals of the task's trials.
    """
    with use_backend("numpy"):
        known = ops.asarray(
            [search.space.encode(trial.params) for trial in observed.trials], dtype="float64"
        )
        points = ops.asarray(list(rows), dtype="float64")
        residuals = ops.asarray(observed.residuals, dtype="float64")
        variance, length = _most_likely(_distances(known, known), residuals)
        cross = variance * ops.exp(_distances(points, known) / (-2.0 * length))
        covariance = _covariance(_distances(known, known), variance, length)
        solved = ops.linearalg.solve(covariance, ops.transpose(cross))
        shifts = ops.matmul(ops.transpose(solved), residuals).tolist()
        variances = (variance - ops.sum(cross * ops.transpose(solved), axis=1)).tolist()
    return [
        _improvement(
            mean + shift - observed.best,
            math.sqrt(max((1.0 + std**2 / variance) * remaining, 1e-6)),
        )
        for mean, std, shift, remaining in zip(*predictions, shifts, variances, strict=True)
    ]


def _distances(rows: Tensor, others: Tensor) -> Tensor:
    differences = ops.expand_dims(rows, 1) - ops.expand_dims(others, 0)
    return ops.sum(differences**2, axis=-1)


def _covariance(distances: Tensor, variance: float, length: float) -> Tensor:
    """Return the covariance of the observed residuals."""
    noise = NOISE * ops.eye(len(distances), dtype="float64")
    return variance * ops.exp(distances / (-2.0 * length)) + noise


def _most_likely(distances: Tensor, residuals: Tensor) -> tuple[float, float]:
    """Return the variance and the length scale with the largest posterior density on a grid.

    Their logarithms have normal priors around `VARIANCE` and `LENGTH`, of standard deviation 1.
    """

    def density(choice: tuple[float, float]) -> float:
        variance, length = choice
        factor = ops.linearalg.cholesky(_covariance(distances, variance, length))
        whitened = ops.linearalg.solve(factor, residuals)
        logs = ops.sum(ops.log(ops.diagonal(factor)))
        prior = math.log(variance / VARIANCE) ** 2 + math.log(length / LENGTH) ** 2
        return -0.5 * (float(ops.sum(whitened**2)) + prior) - float(logs)

    return max(itertools.product(VARIANCES, LENGTHS), key=density)


def _improvement(gap: float, std: float) -> float:
    """Return E[max(0, gap + std * standard normal)]."""
    u = gap / std
    density = math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    return std * (u * 0.5 * math.erfc(-u / math.sqrt(2.0)) + density)
