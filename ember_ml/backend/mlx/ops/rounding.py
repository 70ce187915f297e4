"""Rounding and clipping."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
from mlx.core import ceil as ceil
from mlx.core import floor as floor
from mlx.core import maximum as maximum
from mlx.core import minimum as minimum
from mlx.core import trunc as trunc

from ember_ml.backend.integers import round_to_decimals
from ember_ml.backend.interface import Variants


def round(x: mx.array, decimals: int = 0) -> mx.array:
    if mx.issubdtype(x.dtype, mx.inexact):
        return mx.round(x, decimals)
    limits = mx.iinfo(x.dtype)
    return round_to_decimals(
        x, decimals, (limits.min, limits.max), lambda n: mx.array(np.array(n), x.dtype)
    )


def fmax(x: mx.array, y: mx.array) -> mx.array:
    return mx.where(mx.isnan(x), y, mx.where(mx.isnan(y), x, mx.maximum(x, y)))


def fmin(x: mx.array, y: mx.array) -> mx.array:
    return mx.where(mx.isnan(x), y, mx.where(mx.isnan(y), x, mx.minimum(x, y)))


_SCALARS = {"maximum": maximum, "minimum": minimum}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
