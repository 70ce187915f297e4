"""Unique elements, computed on the host since their number depends on the values."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml.backend.mlx.ops.indexing import take


def _host(x: mx.array) -> mx.array:
    return np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)


def unique_all(x: mx.array) -> Any:
    _, first, inverse, counts = np.unique(
        _host(x), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    indices = mx.array(first)
    return (
        take(mx.stop_gradient(x), indices),
        indices,
        mx.array(inverse.reshape(x.shape)),
        mx.array(counts),
    )


def unique_values(x: mx.array) -> mx.array:
    return unique_all(x)[0]


def unique_rows(x: mx.array) -> Any:
    results = np.unique(
        _host(x), return_index=True, return_inverse=True, return_counts=True, axis=0
    )
    return [mx.array(part) for part in results[1:]]
