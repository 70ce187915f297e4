"""Transposed convolutions: one matrix product, then a strided sum for each tap."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.numpy.ops.signal.convolution import widen
from ember_ml.backend.windows import check_steps


def conv_transpose_general(x, weight, bias, stride, padding, dilation, groups):
    check_steps(stride, dilation, groups)
    inputs, outputs, *kernel = weight.shape
    batch, _, *space = x.shape
    filters = widen(weight).reshape(groups, inputs // groups, -1)
    columns = filters.mT @ widen(x).reshape(batch, groups, inputs // groups, int(np.prod(space)))
    columns = columns.reshape(batch, groups * outputs, *kernel, *space)
    axes = list(zip(space, stride, dilation, kernel, padding, strict=True))
    whole = [(n - 1) * s + d * (k - 1) + 1 - min(high, 0) for n, s, d, k, (_, high) in axes]
    y = np.zeros((batch, groups * outputs, *whole), columns.dtype)
    for tap in np.ndindex(*kernel):
        reached = [
            slice(at * d, at * d + (n - 1) * s + 1, s)
            for at, (n, s, d, _, _) in zip(tap, axes, strict=True)
        ]
        y[(..., *reached)] += columns[(slice(None), slice(None), *tap)]
    y = y[
        (
            ...,
            *[slice(low, n - max(high, 0)) for n, (low, high) in zip(whole, padding, strict=True)],
        )
    ]
    if bias is not None:
        y += bias.reshape(-1, *[1] * len(space))
    return y.astype(x.dtype, copy=False)
