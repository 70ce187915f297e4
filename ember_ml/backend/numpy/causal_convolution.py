"""Depthwise causal convolutions with few taps, by C kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for
from ember_ml.backend.numpy import kernel_calls as native

_CONV = Kernel("causal_conv", "ppppiiiiiiii")
_ADJOINT = Kernel("causal_conv_adjoint", "ppppppiiiiiiii")


def _is_served(x: np.ndarray, weight: np.ndarray, *others: np.ndarray | None) -> bool:
    return (
        native.is_served(x, weight, *others)
        and x.ndim == 3
        and weight.ndim == 2
        and len(weight) == x.shape[1]
        and weight.size > 0
    )


def _in_rows(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return x with rows of time or of channels, an empty array like it, and its strides."""
    x, out = native.dense(x)
    if x.itemsize not in x.strides[1:]:
        x = np.ascontiguousarray(x)
        out = np.empty_like(x)
    strides = [step // x.itemsize for step in x.strides]
    if strides[2] != 1 and x.shape[2] == 1:  # one position: any stride is right
        strides[2] = 1
    return x, out, strides


def run(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray | None:
    """Return `causal_conv1d`; None if the kernel does not take the operands."""
    if not _is_served(x, weight, bias) or (bias is not None and bias.shape != weight.shape[:1]):
        return None
    x, out, strides = _in_rows(x)
    weight = np.ascontiguousarray(weight if strides[2] == 1 else weight.T)
    bias = None if bias is None else np.ascontiguousarray(bias)
    addresses = [native.address(array) for array in (x, weight, bias, out)]
    sizes, taps = x.shape, weight.size // x.shape[1]
    threads = min(threads_for(x.size * taps), x.shape[1])
    _CONV(SUFFIXES[x.dtype.char], *addresses, *sizes, taps, *strides, threads)
    return out


def adjoint(g: np.ndarray, x: np.ndarray, weight: np.ndarray) -> tuple[Any, ...] | None:
    """Return `causal_conv1d_adjoint`; None if the kernel does not take the operands."""
    if not _is_served(x, weight, g) or g.shape != x.shape:
        return None
    x, of_x, strides = _in_rows(x)
    g, of_bias, by_time = native.in_layout(g, x), np.empty(len(weight), x.dtype), strides[2] == 1
    weight = np.ascontiguousarray(weight if by_time else weight.T)
    of_weight = np.empty_like(weight)
    arrays = (g, x, weight, of_x, of_weight, of_bias)
    taps = weight.size // x.shape[1]
    threads = min(threads_for(2 * x.size * taps), x.shape[1])
    addresses = [pointer(array) for array in arrays]
    _ADJOINT(SUFFIXES[x.dtype.char], *addresses, *x.shape, taps, *strides, threads)
    return of_x, of_weight if by_time else of_weight.T, of_bias
