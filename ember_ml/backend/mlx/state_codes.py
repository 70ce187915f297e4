"""Optimizer state in 8 bits: `encode_state` and `decode_state` of `Optimization`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mlx.core as mx

from ember_ml.backend.interface import STATE_BLOCK


def encode_state(
    xs: Sequence[mx.array], like: Sequence[mx.array]
) -> tuple[list[mx.array], list[mx.array]]:
    """Return 8-bit codes, in rows of STATE_BLOCK elements, and the scale of each row."""
    pairs = [_encode(x, y.dtype) for x, y in zip(xs, like, strict=True)]
    return [codes for codes, _ in pairs], [scales for _, scales in pairs]


def _encode(x: mx.array, dtype: mx.Dtype) -> tuple[mx.array, mx.array]:
    rows = mx.pad(x.reshape(-1), (0, -x.size % STATE_BLOCK)).reshape(-1, STATE_BLOCK)
    sizes = mx.abs(rows)
    scales = mx.max(sizes, axis=1, keepdims=True)
    sizes = mx.sqrt(sizes / mx.where(scales == 0, 1.0, scales))
    if dtype == mx.int8:
        return (mx.round(sizes * 127.0) * mx.sign(rows)).astype(dtype), scales
    codes = mx.round(mx.sqrt(sizes) * 255.0)
    return mx.maximum(codes, (rows != 0).astype(mx.float32)).astype(dtype), scales


def decode_state(
    codes: Sequence[mx.array], scales: Sequence[mx.array], shapes: Sequence[tuple[int, ...]]
) -> list[mx.array]:
    """Return new float32 arrays of the given shapes from codes and scales."""
    return [_decode(*each) for each in zip(codes, scales, shapes, strict=True)]


def _decode(codes: mx.array, scales: mx.array, shape: tuple[int, ...]) -> mx.array:
    rows = codes.astype(mx.float32)
    if codes.dtype == mx.int8:
        rows = rows * (1.0 / 127.0)
        rows = rows * mx.abs(rows)
    else:
        rows = mx.square(mx.square(rows * (1.0 / 255.0)))
    return (rows * scales).reshape(-1)[: math.prod(shape)].reshape(shape)
