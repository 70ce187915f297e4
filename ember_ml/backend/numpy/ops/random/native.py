"""Random numbers from NumPy's generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml._core.random_stream import Stream, below

_STREAM = Stream()

seed = _STREAM.reseed


def get_state() -> np.ndarray:
    """Return the state as JSON-compatible data."""
    return _STREAM.state


def set_state(state: np.ndarray) -> None:
    """Restore a state."""
    _STREAM.state = state


def _precision(dtype: np.dtype) -> np.ndarray:
    return np.float64 if dtype == np.float64 else np.float32


def normal(
    shape: tuple[int, ...], mean: float, std: float, *, dtype: np.dtype, device: str
) -> np.ndarray:
    values = _STREAM.rng.standard_normal(shape, _precision(dtype))
    return np.asarray(mean + std * values, dtype)


def uniform(
    shape: tuple[int, ...], low: float, high: float, *, dtype: np.dtype, device: str
) -> np.ndarray:
    values = _STREAM.rng.random(shape, _precision(dtype))
    if (low, high) != (0.0, 1.0):
        values = low + (high - low) * values
    elif dtype != np.float16:
        return np.asarray(values)
    return np.asarray(np.minimum(values, below(high, dtype.name)), dtype)


def _by_stream(name: str) -> Callable[..., np.ndarray]:
    draw = getattr(_STREAM, name)

    def native(*parameters: Any, dtype: np.dtype, device: str) -> np.ndarray:
        return draw(*parameters, dtype=dtype.name).astype(dtype, copy=False)

    return native


truncated_normal = _by_stream("truncated_normal")
exponential = _by_stream("exponential")
laplace = _by_stream("laplace")
gumbel = _by_stream("gumbel")
cauchy = _by_stream("cauchy")
gamma = _by_stream("gamma")
beta = _by_stream("beta")
integers = _by_stream("integers")
poisson = _by_stream("poisson")
permutation = _by_stream("permutation")
