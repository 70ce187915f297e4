"""Gated activations, by C kernels."""

from __future__ import annotations

import numpy as np

from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for
from ember_ml.backend.numpy import kernel_calls as native

_GLU, _SWIGLU = Kernel("glu", "ppiii"), Kernel("swiglu", "ppiii")


def _gated(kernel: Kernel, x: np.ndarray, axis: int) -> np.ndarray | None:
    if not (native.is_served(x) and -x.ndim <= axis < x.ndim and x.shape[axis] % 2 == 0):
        return None
    x, moved = native.as_rows(x, axis)
    half = x.shape[-1] // 2
    out = np.empty((*x.shape[:-1], half), x.dtype)
    rows = out.size // half
    kernel(SUFFIXES[x.dtype.char], pointer(x), pointer(out), rows, half, threads_for(x.size))
    return np.moveaxis(out, -1, axis) if moved else out


def glu(x: np.ndarray, axis: int = -1) -> np.ndarray | None:
    return _gated(_GLU, x, axis)


def swiglu(x: np.ndarray, axis: int = -1) -> np.ndarray | None:
    return _gated(_SWIGLU, x, axis)
