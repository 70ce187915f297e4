"""Random numbers drawn on the host, identical on every backend."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ember_ml._core.errors import ArgumentError

Shape = tuple[int, ...]


_FLOATS = {
    "float64": (52, -1022),
    "float32": (23, -126),
    "float16": (10, -14),
    "bfloat16": (7, -126),
}
"""Dtype -> (bits of the fraction, exponent of the smallest normal number)."""


def below(high: float, dtype: str) -> float:
    """Return the largest normal number of a floating dtype that is less than `high`."""
    bits, least = _FLOATS[dtype]
    if high == 0:
        return -(2.0**least)
    mantissa, exponent = math.frexp(high)
    exponent -= 2 if mantissa == 0.5 else 1  # numbers are denser below a power of two
    step = math.ldexp(1.0, max(exponent, least) - bits)
    return (math.ceil(high / step) - 1) * step


class Stream:
    """Random generator that returns NumPy arrays.

    All draws are computed in float64; for dtypes other than float64 they are rounded to float32.

    Args:
        seed: Seed; None for a random one.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.reseed(seed)

    def reseed(self, seed: int | None) -> None:
        """Restart from a seed; None for a random one."""
        self.rng = np.random.Generator(np.random.PCG64(seed))

    @property
    def state(self) -> dict[str, Any]:
        """State of the generator as Python numbers and strings."""
        return dict(self.rng.bit_generator.state)

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        try:
            self.rng.bit_generator.state = state
        except (TypeError, ValueError, KeyError) as error:
            raise ArgumentError(f"not the state of a random generator: {error}") from None

    def fresh_seed(self) -> int:
        """Return a seed for another stream."""
        return int.from_bytes(self.rng.bytes(16), "little")

    def normal(self, shape: Shape, mean: float, std: float, *, dtype: str) -> Any:
        """Draw from the normal distribution."""
        return _rounded(mean + std * self.rng.standard_normal(shape), dtype)

    def uniform(self, shape: Shape, low: float, high: float, *, dtype: str) -> Any:
        """Draw uniformly from [low, high)."""
        values = _rounded(low + (high - low) * self.rng.random(shape), dtype)
        return np.asarray(np.minimum(values, values.dtype.type(below(high, dtype))))

    def truncated_normal(
        self, shape: Shape, mean: float, std: float, lower: float, upper: float, *, dtype: str
    ) -> Any:
        """Draw from the normal distribution, truncated to mean + [lower, upper] * std."""
        values = np.empty(math.prod(shape))
        count = 0
        while count < values.size:
            missing = values.size - count
            more = self._proposals(max(2 * missing, 16), lower, upper)[:missing]
            values[count : count + more.size] = more
            count += more.size
        return _rounded(mean + std * values.reshape(shape), dtype)

    def _proposals(self, count: int, lower: float, upper: float) -> Any:
        """Return some draws of the standard normal distribution between the bounds."""
        if normal_cdf(upper) - normal_cdf(lower) > 0.25:
            draws = self.rng.standard_normal(count)
            return draws[(draws >= lower) & (draws <= upper)]
        peak = min(max(0.0, lower), upper)
        reach = 40.0 / max(abs(peak), 1.0)  # the density beyond is below e^-40 of the peak
        draws = self.rng.uniform(max(lower, peak - reach), min(upper, peak + reach), count)
        return draws[self.rng.random(count) < np.exp((peak * peak - draws * draws) / 2)]

    def exponential(self, shape: Shape, rate: float, *, dtype: str) -> Any:
        """Draw from the exponential distribution with mean 1 / rate."""
        return _rounded(self.rng.standard_exponential(shape) / rate, dtype)

    def laplace(self, shape: Shape, loc: float, scale: float, *, dtype: str) -> Any:
        """Draw from the Laplace distribution."""
        return _rounded(self.rng.laplace(loc, scale, shape), dtype)

    def gumbel(self, shape: Shape, loc: float, scale: float, *, dtype: str) -> Any:
        """Draw from the Gumbel distribution."""
        return _rounded(self.rng.gumbel(loc, scale, shape), dtype)

    def cauchy(self, shape: Shape, loc: float, scale: float, *, dtype: str) -> Any:
        """Draw from the Cauchy distribution."""
        return _rounded(loc + scale * self.rng.standard_cauchy(shape), dtype)

    def gamma(self, shape: Shape, alpha: float, beta: float, *, dtype: str) -> Any:
        """Draw from the gamma distribution with shape alpha and rate beta."""
        return _rounded(self.rng.standard_gamma(alpha, shape) / beta, dtype)

    def beta(self, shape: Shape, a: float, b: float, *, dtype: str) -> Any:
        """Draw from the beta distribution."""
        return _rounded(self.rng.beta(a, b, shape), dtype)

    def integers(self, shape: Shape, low: int, high: int, *, dtype: str) -> Any:
        """Draw integers from [low, high)."""
        return np.asarray(self.rng.integers(low, high, shape)).astype(dtype)

    def poisson(self, shape: Shape, rate: Any, *, dtype: str) -> Any:
        """Draw from the Poisson distribution; the rate broadcasts to the shape."""
        return np.asarray(self.rng.poisson(rate, shape)).astype(dtype)

    def permutation(self, length: int, *, dtype: str) -> Any:
        """Return 0 to length - 1 in random order."""
        return self.rng.permutation(length).astype(dtype)

    def choice(self, shape: Shape, count: int, replace: bool, p: Any, *, dtype: str) -> Any:
        """Draw from 0 to count - 1 with probabilities proportional to p."""
        weights = np.asarray(p, np.float64)
        return np.asarray(self.rng.choice(count, shape, replace, weights / weights.sum())).astype(
            dtype
        )

    def orthogonal(self, shape: Shape, gain: float, *, dtype: str) -> Any:
        """Return a matrix with orthogonal rows (or columns, if fewer) of norm `gain`."""
        tall = self.rng.standard_normal((max(shape), min(shape)))
        q, r = np.linalg.qr(tall)
        q = gain * q * np.where(np.diagonal(r) < 0, -1.0, 1.0)
        return _rounded(q if shape[0] >= shape[1] else np.ascontiguousarray(q.T), dtype)


def _rounded(values: Any, dtype: str) -> Any:
    return np.asarray(values, np.float64 if dtype == "float64" else np.float32)


def normal_cdf(x: float) -> float:
    """Return the cumulative distribution function of the standard normal distribution."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))
