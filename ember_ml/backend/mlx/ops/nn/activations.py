"""Activations."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx


def relu(x: Any) -> Any:
    return mx.maximum(x, 0)


def silu(x: Any) -> Any:
    return x * mx.sigmoid(x)


def gelu(x: Any, approximate: bool = False) -> Any:
    wide = x.astype(mx.float32)
    if approximate in (True, "tanh"):
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide * wide * wide)
        return (0.5 * wide * (1.0 + mx.tanh(inner))).astype(x.dtype)
    return (0.5 * wide * (1.0 + mx.erf(wide * math.sqrt(0.5)))).astype(x.dtype)
