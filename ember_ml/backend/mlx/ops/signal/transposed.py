"""Transposed convolutions: convolutions of x with zeros inserted between its elements."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.ops.signal.convolution import (
    by_group,
    empty_like,
    finish,
    of_any_dtype,
    with_channels,
)
from ember_ml.backend.windows import check_memory, check_steps


def _filters(weight: mx.array, groups: int) -> mx.array:
    """Permute (in, out / groups, kernel...) to MLX's (out, kernel..., in / groups)."""
    inputs, outputs, *kernel = weight.shape
    split = weight.reshape(groups, inputs // groups, outputs, *kernel)
    return mx.moveaxis(split, 1, -1).reshape(groups * outputs, *kernel, inputs // groups)


def _crop(y: mx.array, padding: Any) -> mx.array:
    """Crop or zero-pad the spatial axes; MLX's own options have wrong gradients."""
    more = [(0, max(-high, 0)) for _, high in padding]
    if any(after for _, after in more):
        y = mx.pad(y, [(0, 0), *more, (0, 0)])
    cuts = [
        slice(low, n - max(high, 0)) for n, (low, high) in zip(y.shape[1:-1], padding, strict=True)
    ]
    return y[(slice(None), *cuts)]


def conv_transpose_general(x, weight, bias, stride, padding, dilation, groups):
    check_steps(stride, dilation, groups)
    # MLX allocates `stride` elements for each one of x, even for a single one
    stride = [s if n > 1 else 1 for n, s in zip(x.shape[2:], stride, strict=True)]
    axes = zip(x.shape[2:], stride, weight.shape[2:], dilation, strict=True)
    whole = [(n - 1) * s + d * (k - 1) + 1 for n, s, k, d in axes]
    check_memory((len(x), groups * weight.shape[1], *whole), x.dtype.size)
    if x.shape[1] == 0:
        x, weight = with_channels(x, weight, groups, 0)
    if len(x) == 0:
        args = weight, bias, stride, padding, dilation, groups
        return empty_like(conv_transpose_general, x, *args)
    edges = [step * (taps - 1) for taps, step in zip(weight.shape[2:], dilation, strict=True)]

    def native(x: mx.array, weight: mx.array, groups: int) -> mx.array:
        return mx.conv_general(x, weight, 1, (edges, edges), dilation, stride, groups, flip=True)

    every = by_group(native, groups, len(stride))
    y = of_any_dtype(every, mx.moveaxis(x, 1, -1), _filters(weight, groups))
    return finish(_crop(y, padding), bias)
