"""Activations."""

from __future__ import annotations

import math

import numpy as np

from ember_ml.backend.interface import Variants
from ember_ml.backend.numpy import kernel_calls as native
from ember_ml.backend.numpy.error_function import erf, quick_erf
from ember_ml.backend.numpy.ops.nn._kernel import kernel


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


@kernel
def silu(x: np.ndarray) -> np.ndarray:
    return x / (1.0 + np.exp(-x))


@kernel
def gelu(x: np.ndarray, approximate: bool = False) -> np.ndarray:
    if approximate in (True, "tanh"):
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1.0 + np.tanh(inner))
    return 0.5 * x * (1.0 + (erf if x.dtype == np.float64 else quick_erf)(x * math.sqrt(0.5)))


_gelu_by_erf = native.elementwise("gelu", gelu)
_gelu_by_tanh = native.elementwise("gelu_tanh", lambda x: gelu(x, True))


def _gelu(x: np.ndarray, approximate: bool = False) -> np.ndarray:
    return (_gelu_by_tanh if approximate in (True, "tanh") else _gelu_by_erf)(x)


VARIANTS = Variants(
    by_dtype={
        "silu": dict.fromkeys(("float32", "float64"), native.elementwise("silu", silu)),
        "gelu": dict.fromkeys(("float32", "float64"), _gelu),
    }
)
