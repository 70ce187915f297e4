"""Convolutions by im2col: windows as columns of a matrix, multiplied by the filters."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ember_ml.backend.windows import check_steps


def widen(x: np.ndarray) -> np.ndarray:
    """Convert float16 to float32; NumPy multiplies float16 matrices without BLAS."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def pad(x: np.ndarray, padding: Any) -> np.ndarray:
    """Zero-pad the spatial axes."""
    if not any(map(any, padding)):
        return x
    lengths = [low + n + high for n, (low, high) in zip(x.shape[2:], padding, strict=True)]
    padded = np.zeros((*x.shape[:2], *lengths), x.dtype)
    inner = [slice(low, low + n) for n, (low, _) in zip(x.shape[2:], padding, strict=True)]
    padded[(slice(None), slice(None), *inner)] = x
    return padded


def windows(
    x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> np.ndarray:
    """Return a view of shape (batch, channels, space..., kernel...)."""
    axes = tuple(range(2, 2 + len(kernel)))
    spans = [step * (taps - 1) + 1 for taps, step in zip(kernel, dilation, strict=True)]
    view = sliding_window_view(x, spans, axes)
    return view[(..., *[slice(None, None, step) for step in (*stride, *dilation)])]


def conv_general(x, weight, bias, stride, padding, dilation, groups):
    check_steps(stride, dilation, groups)
    rank = len(stride)
    outputs, inputs, *kernel = weight.shape
    view = windows(pad(widen(x), padding), kernel, stride, dilation)
    space = view.shape[2 : 2 + rank]
    order = (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
    columns = view.transpose(order).reshape(len(x), groups, inputs * prod(kernel), prod(space))
    filters = widen(weight).reshape(groups, outputs // groups, -1)
    y = (filters @ columns).reshape(len(x), outputs, *space)
    if bias is not None:
        y += bias.reshape(-1, *[1] * rank)
    return y.astype(x.dtype, copy=False)
