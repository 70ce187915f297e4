"""Window functions, computed by NumPy in float64; MLX lacks float64 and the Bessel function."""

from __future__ import annotations

from functools import partial
from operator import index
from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml._core.errors import ArgumentError, UnsupportedDTypeError


def _sample(
    symmetric: Any, name: str, window_length: Any, periodic: Any, dtype: mx.Dtype
) -> mx.array:
    """Return a window; a periodic one is a symmetric one of one more sample, without the last."""
    if not mx.issubdtype(dtype, mx.floating):
        raise UnsupportedDTypeError(f"{name} takes real floating dtypes, not {dtype}")
    if index(window_length) < 0:
        raise ArgumentError(f"{name}: window_length={window_length} is negative")
    if window_length <= 1:
        return mx.ones(window_length, dtype)
    values = symmetric(window_length + bool(periodic))[:window_length]
    return mx.array(values.astype(np.float32)).astype(dtype)


def _gaussian(length: int, std: float) -> mx.array:
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
