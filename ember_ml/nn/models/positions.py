"""Embeddings of positions."""

from __future__ import annotations

import math

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor


def sinusoids(length: int, features: int, like: Tensor) -> Tensor:
    """Sines and cosines of the positions, at frequencies from 1 to 1/10000: (length, features).

    Example:
        >>> from ember_ml.nn.models.positions import sinusoids
        >>> sinusoids(1, 4, ops.ones(1)).tolist()
        [[0.0, 0.0, 1.0, 1.0]]
    """
    half = -(-features // 2)
    rates = [math.exp(-math.log(10000.0) * at / max(1, half)) for at in range(half)]
    rows = [
        [wave(at * rate) for wave in (math.sin, math.cos) for rate in rates][:features]
        for at in range(length)
    ]
    return convert_to_tensor(rows, dtype=like.dtype, device=like.device, backend=like.backend)
