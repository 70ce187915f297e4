"""Confidence intervals of accuracies and of their differences."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

Interval = tuple[float, float]
"""Lower and upper bound of a 95 % confidence interval."""
MAX_EXACT = 6
"""Largest number of seeds for which the bootstrap enumerates all resamples."""
RESAMPLES = 9999
"""Number of random resamples if there are more seeds."""
TAILS = (0.025, 0.975)
Z = 1.959964
"""97.5 % quantile of the normal distribution."""
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % quantiles of Student's t distribution with 1 to 10 degrees of freedom."""


def bootstrap(values: Sequence[float]) -> Interval:
    """Return the percentile bootstrap interval of a mean.

    It lies within the range of the values; with two or three values it is their range.

    Args:
        values: One value for each seed.

    Example:
        >>> from ember_ml.mad.intervals import bootstrap
        >>> bootstrap([0.5, 1.0])
        (0.5, 1.0)
    """
    means = np.asarray(values, dtype=float)[_resamples(len(values))].mean(axis=1)
    low, high = np.quantile(means, TAILS, method="inverted_cdf")
    return _within(float(low), float(high), min(values), max(values))


@functools.lru_cache(maxsize=16)
def _resamples(count: int) -> np.ndarray:
    """Return the indices of the resamples of some values, one row for each resample."""
    if count <= MAX_EXACT:
        return np.indices((count,) * count).reshape(count, -1).T
    return np.random.default_rng(0).integers(count, size=(RESAMPLES, count))


def wilson(fraction: float, count: int) -> Interval:
    """Return Wilson's score interval of a proportion.

    Args:
        fraction: Observed proportion.
        count: Number of independent observations.

    Example:
        >>> from ember_ml.mad.intervals import wilson
        >>> [round(bound, 3) for bound in wilson(1.0, 100)]
        [0.963, 1.0]
    """
    scale = 1 + Z**2 / count
    center = (fraction + Z**2 / (2 * count)) / scale
    half = Z / scale * math.sqrt(fraction * (1 - fraction) / count + (Z / (2 * count)) ** 2)
    return max(0.0, min(center - half, fraction)), min(1.0, max(center + half, fraction))


def mean_interval(means: Sequence[float], intervals: Sequence[Interval]) -> Interval:
    """Return the interval of the mean of independent estimates (Zou and Donner's MOVER).

    It lies within the mean of the lower and the mean of the upper bounds.

    Args:
        means: Estimates.
        intervals: Interval of each estimate.
    """
    mean, count = math.fsum(means) / len(means), len(means)
    pairs = list(zip(means, intervals, strict=True))
    below = math.sqrt(math.fsum((value - low) ** 2 for value, (low, _) in pairs)) / count
    above = math.sqrt(math.fsum((high - value) ** 2 for value, (_, high) in pairs)) / count
    return _within(mean - below, mean + above, 0.0, 1.0)


def difference_interval(
    one: float, one_interval: Interval, other: float, other_interval: Interval
) -> Interval:
    """Return the interval of `one - other` for independent estimates (MOVER).

    Args:
        one: First estimate.
        one_interval: Interval of the first estimate.
        other: Second estimate.
        other_interval: Interval of the second estimate.
    """
    below = math.hypot(one - one_interval[0], other_interval[1] - other)
    above = math.hypot(one_interval[1] - one, other - other_interval[0])
    return one - other - below, one - other + above


def t_interval(values: Sequence[float]) -> Interval:
    """Return Student's t interval of a mean, which is also valid for few values.

    Args:
        values: Two or more values, such as the differences between two architectures by seed.
    """
    count = len(values)
    mean = math.fsum(values) / count
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = t_quantile(count - 1) * deviation / math.sqrt(count)
    return mean - half, mean + half


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t distribution, accurate to 0.002.

    Args:
        freedom: Degrees of freedom.
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    first = (Z**3 + Z) / 4
    second = (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96
    return Z + first / freedom + second / freedom**2


def _within(low: float, high: float, smallest: float, largest: float) -> Interval:
    """Clip the bounds to a range that they may exceed by rounding."""
    return max(low, smallest), min(high, largest)
