"""Rounding and clipping."""

from __future__ import annotations

import mlx.core as mx
from mlx.core import ceil as ceil
from mlx.core import floor as floor
from mlx.core import maximum as maximum
from mlx.core import minimum as minimum
from mlx.core import round as round
from mlx.core import trunc as trunc

from ember_ml.backend.interface import Variants


def fmax(x: mx.array, y: mx.array) -> mx.array:
    return mx.where(mx.isnan(x), y, mx.where(mx.isnan(y), x, mx.maximum(x, y)))


def fmin(x: mx.array, y: mx.array) -> mx.array:
    return mx.where(mx.isnan(x), y, mx.where(mx.isnan(y), x, mx.minimum(x, y)))


_SCALARS = {"maximum": maximum, "minimum": minimum}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
