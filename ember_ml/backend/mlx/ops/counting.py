"""Counts of values."""

from __future__ import annotations

import mlx.core as mx
import numpy as np

from ember_ml.backend.mlx.indexing import fixed


def bincount(x: mx.array, weights: mx.array | None = None, minlength: int = 0) -> mx.array:
    """Count on the host, since the length depends on the values."""
    if weights is None:
        return mx.array(np.bincount(np.array(x).astype(np.int64), minlength=minlength))
    if weights.shape != x.shape:
        raise ValueError(f"{weights.shape} weights for {x.shape} elements")
    target = weights.dtype if mx.issubdtype(weights.dtype, mx.floating) else mx.float32
    sums = mx.zeros((minlength,)).at[fixed(x)].add(weights.astype(mx.float32))
    return sums.astype(target)
