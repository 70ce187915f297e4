"""Correlation, and short causal convolutions."""

from __future__ import annotations

import numpy as np

from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.backend.numpy.causal_convolution import run as causal_conv1d
from ember_ml.backend.numpy.causal_convolution import run_silu as causal_conv1d_silu

__all__ = ["causal_conv1d", "causal_conv1d_silu", "correlate"]


def correlate(x, y, mode="valid"):
    if x.ndim != 1 or y.ndim != 1 or 0 in (x.size, y.size):
        raise ShapeError(f"correlate takes two vectors, not shapes {x.shape} and {y.shape}")
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"correlate: mode must be 'full', 'same' or 'valid', not {mode!r}")
    return np.correlate(x, y, mode)
