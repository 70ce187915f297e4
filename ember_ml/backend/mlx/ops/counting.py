"""How often values occur."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml.backend.mlx import from_host, to_portable


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Counts, or sums of weights; on the host, for the length depends on the values."""
    values = np.array(x).astype(np.int64)
    if weights is None:
        return mx.array(np.bincount(values, minlength=minlength))
    target = weights.dtype if mx.issubdtype(weights.dtype, mx.floating) else mx.float32
    return from_host(np.bincount(values, to_portable(weights), minlength), target, "cpu", None)
