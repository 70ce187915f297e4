"""Counts of values."""

from __future__ import annotations

import numpy as np


def bincount(x: np.ndarray, weights: np.ndarray | None = None, minlength: int = 0) -> np.ndarray:
    """Return the counts, or the sums of the weights."""
    out = np.bincount(x.astype(np.int64), weights, minlength)
    if weights is None:
        return out
    return out.astype(weights.dtype if weights.dtype.kind == "f" else np.float32)
