"""Tensors as host arrays."""

from __future__ import annotations

from ember_ml._core import recording
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import bfloat16, float32
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.causal.spikes.dynamics import Array


def host(x: Tensor) -> Array:
    """Return a tensor as a host array, bfloat16 as float32; no tape records the conversion."""
    if x.dtype != bfloat16:
        return x.numpy()
    with recording.only():
        return convert_to_tensor(x, dtype=float32).numpy()
