"""Linear projection, embedding, one-hot encoding."""

from __future__ import annotations

import operator

import mlx.core as mx

from ember_ml._core.errors import ArgumentTypeError

_INTEGERS = (
    *(mx.int8, mx.int16, mx.int32, mx.int64),
    *(mx.uint8, mx.uint16, mx.uint32, mx.uint64),
)


def linear(x: mx.array, weight: mx.array, bias: mx.array | None = None) -> mx.array:
    return mx.matmul(x, weight.T) if bias is None else mx.addmm(bias, x, weight.T)


def embedding(weight: mx.array, indices: mx.array) -> mx.array:
    if indices.dtype not in _INTEGERS:
        raise ArgumentTypeError(f"embedding: indices must be integers, not {indices.dtype}")
    return mx.take(weight, indices, axis=0)


def one_hot(
    x: mx.array, num_classes: int, axis: int = -1, dtype: mx.Dtype | None = None
) -> mx.array:
    dtype = mx.float32 if dtype is None else dtype
    if num_classes < 0:
        raise ValueError("num_classes must not be negative")
    return mx.moveaxis(
        (x[..., None] == mx.arange(operator.index(num_classes))).astype(dtype), -1, axis
    )
