"""Window functions."""

from __future__ import annotations

from functools import partial
from operator import index
from typing import Any

import numpy as np

from ember_ml._core.errors import ArgumentError, UnsupportedDTypeError


def _sample(
    symmetric: Any, name: str, window_length: Any, periodic: Any, dtype: np.dtype
) -> np.ndarray:
    """Return a window; a periodic one is a symmetric one of one more sample, without the last."""
    if np.dtype(dtype).kind != "f":
        raise UnsupportedDTypeError(f"{name} takes real floating dtypes, not {np.dtype(dtype)}")
    if index(window_length) < 0:
        raise ArgumentError(f"{name}: window_length={window_length} is negative")
    if window_length <= 1:
        return np.ones(window_length, dtype)
    return symmetric(window_length + bool(periodic))[:window_length].astype(dtype)


def _gaussian(length: int, std: float) -> np.ndarray:
    if std <= 0:
        raise ArgumentError(f"gaussian_window: std={std} is not positive")
    return np.exp(-0.5 * ((np.arange(length) - (length - 1) / 2) / std) ** 2)


def bartlett_window(window_length, periodic=True, *, dtype, device):
    return _sample(np.bartlett, "bartlett_window", window_length, periodic, dtype)


def blackman_window(window_length, periodic=True, *, dtype, device):
    return _sample(np.blackman, "blackman_window", window_length, periodic, dtype)


def gaussian_window(window_length, periodic=True, std=1.0, *, dtype, device):
    taper = partial(_gaussian, std=std)
    return _sample(taper, "gaussian_window", window_length, periodic, dtype)


def hamming_window(window_length, periodic=True, *, dtype, device):
    return _sample(np.hamming, "hamming_window", window_length, periodic, dtype)


def hann_window(window_length, periodic=True, *, dtype, device):
    return _sample(np.hanning, "hann_window", window_length, periodic, dtype)


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype, device):
    taper = partial(np.kaiser, beta=float(beta))
    return _sample(taper, "kaiser_window", window_length, periodic, dtype)
