"""Depthwise causal convolutions with few taps, by C kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for
from ember_ml._native.frame import Frame
from ember_ml.backend import native_convolution as columns
from ember_ml.backend.numpy import kernel_calls as native
from ember_ml.backend.numpy.native import frame

_ROWS = Kernel("causal_rows", "ppppiiiiiii")
_ROWS_ADJOINT = Kernel("causal_rows_adjoint", "ppppppiiiiiii")


def _is_served(x: np.ndarray, weight: np.ndarray, *others: np.ndarray | None) -> bool:
    return (
        native.is_served(x, weight, *others)
        and x.ndim == 3
        and weight.ndim == 2
        and len(weight) == x.shape[1]
        and weight.size > 0
    )


def _in_rows(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return x with contiguous rows of time, an empty array like it, and its first strides."""
    x, out = native.dense(x)
    if x.strides[2] != x.itemsize:
        x = np.ascontiguousarray(x)
        out = np.empty_like(x)
    return x, out, [step // x.itemsize for step in x.strides[:2]]


def run(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray | None:
    """Return `causal_conv1d`; None if the kernel does not take the operands."""
    if not _is_served(x, weight, bias) or not _fits(bias, weight):
        return None
    taps = weight.shape[1]
    access = _columns(x, weight, bias)
    if access is not None:
        return columns.forward(access, x, weight, bias, silu=False)
    x, out, strides = _in_rows(x)
    weight, bias = (
        np.ascontiguousarray(weight),
        None if bias is None else np.ascontiguousarray(bias),
    )
    addresses = [native.address(array) for array in (x, weight, bias, out)]
    threads = min(threads_for(x.size * taps), x.shape[1])
    _ROWS(SUFFIXES[x.dtype.char], *addresses, *x.shape, taps, *strides, threads)
    return out


def adjoint(g: np.ndarray, x: np.ndarray, weight: np.ndarray) -> tuple[Any, ...] | None:
    """Return `causal_conv1d_adjoint`; None if the kernel does not take the operands."""
    if not _is_served(x, weight, g) or g.shape != x.shape:
        return None
    access = _columns(x, weight, g)
    if access is not None:
        return columns.adjoint(access, g, x, weight, None, silu=False)
    taps = weight.shape[1]
    x, of_x, strides = _in_rows(x)
    g, weight = native.in_layout(g, x), np.ascontiguousarray(weight)
    of_weight, of_bias = np.empty_like(weight), np.empty(len(weight), x.dtype)
    threads = min(threads_for(2 * x.size * taps), x.shape[1])
    addresses = [pointer(array) for array in (g, x, weight, of_x, of_weight, of_bias)]
    _ROWS_ADJOINT(SUFFIXES[x.dtype.char], *addresses, *x.shape, taps, *strides, threads)
    return of_x, of_weight, of_bias


def run_silu(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
) -> np.ndarray | None:
    """Return `causal_conv1d_silu`; None if the kernel does not take the operands."""
    access = _silu_access(x, weight, bias)
    return None if access is None else columns.forward(access, x, weight, bias, silu=True)


def adjoint_silu(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
) -> tuple[Any, ...] | None:
    """Return `causal_conv1d_silu_adjoint`; None if the kernel does not take the operands."""
    access = _silu_access(x, weight, bias, g) if g.shape == x.shape else None
    return None if access is None else columns.adjoint(access, g, x, weight, bias, silu=True)


def _fits(bias: np.ndarray | None, weight: np.ndarray) -> bool:
    return bias is None or bias.shape == weight.shape[:1]


def _silu_access(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, *others: np.ndarray
) -> Frame | None:
    """Return the access to operands that the kernels with SiLU take, in any memory layout."""
    if not _is_served(x, weight, bias, *others) or not _fits(bias, weight):
        return None
    return frame(x, weight, bias, *others) if weight.shape[1] <= columns.MOST_TAPS else None


def _columns(x: np.ndarray, weight: np.ndarray, *others: np.ndarray | None) -> Frame | None:
    """Return the access to the operands if the channels of x are contiguous."""
    access = frame(x, weight, *others)
    if access is None or not columns.fits(access.strides(x), weight.shape[1]):
        return None
    return access
