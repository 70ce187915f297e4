"""Normalization over trailing axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ember_ml._core.errors import AxisError, ShapeError
from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for
from ember_ml.backend.numpy import kernel_calls as native
from ember_ml.backend.numpy.ops.nn._kernel import kernel

_LAYER_NORM, _RMS_NORM = Kernel("layer_norm", "ppppiiri"), Kernel("rms_norm", "ppppiiri")


def _rows(x: np.ndarray, axis: int, *weights: Any) -> np.ndarray:
    """Return x with the normalized axes merged into one; check the shapes of the weights."""
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"axis={axis} is out of range for the shape {x.shape}")
    normalized = x.shape[axis % x.ndim :]
    for weight in weights:
        if weight is not None and weight.shape != normalized:
            raise ShapeError(
                f"the weight has shape {weight.shape}; expected {normalized}, the normalized axes"
            )
    return x.reshape(*x.shape[: axis % x.ndim], math.prod(normalized))


def _by_kernel(
    kernel: Kernel, rows: np.ndarray, weight: Any, bias: Any, eps: float, shape: tuple[int, ...]
) -> np.ndarray:
    x, out, columns = np.ascontiguousarray(rows), np.empty(shape, rows.dtype), rows.shape[-1]
    weight, bias = (None if w is None else np.ascontiguousarray(w) for w in (weight, bias))
    suffix, threads = SUFFIXES[x.dtype.char], threads_for(x.size)
    addresses = [native.address(array) for array in (x, weight, bias)]
    kernel(suffix, *addresses, pointer(out), x.size // columns, columns, float(eps), threads)
    return out


def _mean(rows: np.ndarray) -> np.ndarray:
    return np.add.reduce(rows, -1, keepdims=True) / rows.shape[-1]


@kernel
def layer_norm(
    x: np.ndarray,
    weight: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    eps: float = 1e-5,
    axis: int = -1,
) -> np.ndarray:
    rows = _rows(x, axis, weight, bias)
    if native.is_served(x, weight, bias):
        return _by_kernel(_LAYER_NORM, rows, weight, bias, eps, x.shape)
    rows = rows - _mean(rows)
    rows /= np.sqrt(_mean(rows * rows) + float(eps))
    out = rows.reshape(x.shape)
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out


@kernel
def rms_norm(
    x: np.ndarray, weight: np.ndarray | None = None, eps: float = 1e-6, axis: int = -1
) -> np.ndarray:
    rows = _rows(x, axis, weight)
    if native.is_served(x, weight):
        return _by_kernel(_RMS_NORM, rows, weight, None, eps, x.shape)
    out = (rows / np.sqrt(_mean(rows * rows) + float(eps))).reshape(x.shape)
    if weight is not None:
        out *= weight
    return out
