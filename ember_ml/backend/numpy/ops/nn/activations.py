"""Activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ember_ml.backend.numpy.error_function import erf, quick_erf
from ember_ml.backend.numpy.ops.nn._kernel import kernel


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


@kernel
def silu(x: Any) -> Any:
    return x / (1.0 + np.exp(-x))


@kernel
def gelu(x: Any, approximate: bool = False) -> Any:
    if approximate in (True, "tanh"):
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1.0 + np.tanh(inner))
    return 0.5 * x * (1.0 + (erf if x.dtype == np.float64 else quick_erf)(x * math.sqrt(0.5)))
