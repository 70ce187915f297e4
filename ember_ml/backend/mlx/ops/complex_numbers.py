"""Parts of complex numbers."""

from __future__ import annotations

import mlx.core as mx
from mlx.core import conj as conj
from mlx.core import imag as imag
from mlx.core import real as real

from ember_ml.backend.mlx.ops.trigonometric import atan2


def angle(x: mx.array) -> mx.array:
    return atan2(mx.imag(x), mx.real(x))
