"""Features of series of equal length: functions from (rows, time) to columns."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from ember_ml import ops
from ember_ml._core.tensor import Tensor


class Series:
    """Series of equal length, and the values that several features use.

    Args:
        x: Series of shape (rows, time).
        eps: Standard deviation up to which a series counts as constant.
        lags: Number of lags of the autocorrelation.
        sample_rate: Number of values per unit of time.
    """

    def __init__(self, x: Tensor, eps: float, lags: int, sample_rate: float) -> None:
        self.x = x
        self.eps = eps
        self.lags = lags
        self.sample_rate = sample_rate
        self.length = x.shape[1]
        mean = ops.mean(x, axis=1, keepdims=True)
        self.mean = mean + ops.mean(x - mean, axis=1, keepdims=True)  # accurate in float32
        self.deviations = x - self.mean

    @functools.cached_property
    def var(self) -> Tensor:
        """Variance of the population."""
        return ops.mean(self.deviations * self.deviations, axis=1)

    @functools.cached_property
    def is_constant(self) -> Tensor:
        """Whether the standard deviation is at most eps, or within the rounding of the mean."""
        rounding = 10 * ops.finfo(self.x.dtype).eps * ops.abs(self.mean[:, 0])
        return ops.sqrt(self.var) <= ops.maximum(rounding, self.eps)

    def over_var(self, value: Tensor, power: float = 1.0) -> Tensor:
        """Return value / var**power; 0 for constant series."""
        scale = ops.where(self.is_constant, 1.0, self.var)
        return ops.where(self.is_constant, 0.0, value / scale**power)

    def moment(self, order: int) -> Tensor:
        """Return a central moment."""
        return ops.mean(self.deviations**order, axis=1)

    @functools.cached_property
    def spectrum(self) -> tuple[Tensor, Tensor]:
        """Frequencies, and the magnitudes of the series without its mean as shares of their sum."""
        magnitudes = ops.abs(ops.fft.rfft(self.deviations, axis=1))
        bins = ops.cumsum(ops.ones_like(magnitudes[0]), axis=0) - 1.0
        magnitudes = ops.where(bins > 0, magnitudes, 0.0)  # the rest of the mean is rounding
        total = ops.sum(magnitudes, axis=1, keepdims=True)
        silent = ops.expand_dims(self.is_constant, 1)
        shares = ops.where(silent, 0.0, magnitudes / ops.where(silent, 1.0, total))
        return bins * (self.sample_rate / self.length), shares


def skew(s: Series) -> Tensor:
    """Return the unbiased skewness; 0 for fewer than 3 values."""
    n = s.length
    if n < 3:
        return ops.zeros_like(s.var)
    return s.over_var(s.moment(3), 1.5) * (math.sqrt(n * (n - 1)) / (n - 2))


def kurtosis(s: Series) -> Tensor:
    """Return the unbiased excess kurtosis; 0 for fewer than 4 values."""
    n = s.length
    if n < 4:
        return ops.zeros_like(s.var)
    excess = s.over_var(s.moment(4), 2.0) - 3.0
    unbiased = (excess * (n + 1) + 6.0) * ((n - 1) / ((n - 2) * (n - 3)))
    return ops.where(s.is_constant, 0.0, unbiased)


def mean_abs_change(s: Series) -> Tensor:
    """Return the mean magnitude of the change from one value to the next."""
    if s.length < 2:
        return ops.zeros_like(s.var)
    return ops.mean(ops.abs(s.x[:, 1:] - s.x[:, :-1]), axis=1)


def slope(s: Series) -> Tensor:
    """Return the slope of the line of least squares, per unit of time."""
    if s.length < 2:
        return ops.zeros_like(s.var)
    time = ops.cumsum(ops.ones_like(s.x[0]), axis=0) - (s.length + 1) / 2
    squares = s.length * (s.length**2 - 1) / 12
    return ops.sum(s.deviations * time, axis=1) * (s.sample_rate / squares)


def zero_crossings(s: Series) -> Tensor:
    """Return the number of changes between positive and other values."""
    positive = s.x > 0
    changes = ops.astype(positive[:, 1:] != positive[:, :-1], s.x.dtype)
    return ops.sum(changes, axis=1)


def autocorrelation(s: Series) -> list[Tensor]:
    """Return the autocorrelations, each divided by its own number of pairs; 0 without pairs."""
    values = []
    for lag in range(1, s.lags + 1):
        if lag >= s.length:
            values.append(ops.zeros_like(s.var))
            continue
        pairs = s.deviations[:, lag:] * s.deviations[:, :-lag]
        values.append(s.over_var(ops.mean(pairs, axis=1)))
    return values


def spectral_centroid(s: Series) -> Tensor:
    """Return the mean frequency."""
    frequencies, shares = s.spectrum
    return ops.sum(frequencies * shares, axis=1)


def spectral_spread(s: Series) -> Tensor:
    """Return the standard deviation of the frequency."""
    frequencies, shares = s.spectrum
    distance = frequencies - ops.expand_dims(spectral_centroid(s), 1)
    return ops.sqrt(ops.sum(distance * distance * shares, axis=1))


def spectral_entropy(s: Series) -> Tensor:
    """Return the entropy of the magnitudes, divided by its maximum."""
    _, shares = s.spectrum
    logs = ops.log(ops.where(shares > 0, shares, 1.0))
    return -ops.sum(shares * logs, axis=1) / math.log(max(shares.shape[1], 2))


def spectral_peak(s: Series) -> Tensor:
    """Return the frequency of the greatest magnitude."""
    frequencies, shares = s.spectrum
    return ops.take(frequencies, ops.argmax(shares, axis=1), axis=0)


SINGLE: dict[str, Callable[[Series], Tensor]] = {
    "mean": lambda s: s.mean[:, 0],
    "std": lambda s: ops.sqrt(s.var),
    "var": lambda s: s.var,
    "min": lambda s: ops.min(s.x, axis=1),
    "max": lambda s: ops.max(s.x, axis=1),
    "median": lambda s: ops.median(s.x, axis=1),
    "sum": lambda s: ops.sum(s.x, axis=1),
    "energy": lambda s: ops.sum(s.x * s.x, axis=1),
    "rms": lambda s: ops.sqrt(ops.mean(s.x * s.x, axis=1)),
    "skew": skew,
    "kurtosis": kurtosis,
    "mean_abs_change": mean_abs_change,
    "slope": slope,
    "zero_crossings": zero_crossings,
    "spectral_centroid": spectral_centroid,
    "spectral_spread": spectral_spread,
    "spectral_entropy": spectral_entropy,
    "spectral_peak": spectral_peak,
}
"""Features of one value."""
SPECTRAL = ("spectral_centroid", "spectral_spread", "spectral_entropy", "spectral_peak")


def names_of(feature: str, lags: int) -> tuple[str, ...]:
    """Return the names of the columns of a feature."""
    if feature == "acf":
        return tuple(f"acf_{lag}" for lag in range(1, lags + 1))
    return SPECTRAL if feature == "spectral" else (feature,)


def columns_of(feature: str, series: Series) -> list[Tensor]:
    """Return the columns of a feature."""
    if feature == "acf":
        return autocorrelation(series)
    return [SINGLE[name](series) for name in names_of(feature, series.lags)]
