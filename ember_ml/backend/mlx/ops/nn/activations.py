"""Activations."""

from __future__ import annotations

import functools
import math

import mlx.core as mx

fused = functools.partial(mx.compile, shapeless=True)
"""Fuses a chain of elementwise ops into one kernel for any shape."""


def relu(x: mx.array) -> mx.array:
    return mx.maximum(x, 0)


@fused
def silu(x: mx.array) -> mx.array:
    return x * mx.sigmoid(x)


def gelu(x: mx.array, approximate: bool = False) -> mx.array:
    return _gelu_by_tanh(x) if approximate in (True, "tanh") else _gelu(x)


@fused
def _gelu(x: mx.array) -> mx.array:
    wide = x.astype(mx.float32)
    return (0.5 * wide * (1.0 + mx.erf(wide * math.sqrt(0.5)))).astype(x.dtype)


@fused
def _gelu_by_tanh(x: mx.array) -> mx.array:
    wide = x.astype(mx.float32)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide * wide * wide)
    return (0.5 * wide * (1.0 + mx.tanh(inner))).astype(x.dtype)
