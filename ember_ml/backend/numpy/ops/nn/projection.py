"""Linear projection, embedding, one-hot encoding."""

from __future__ import annotations

import math
import operator

import numpy as np

from ember_ml._core.errors import ArgumentTypeError, IndexOutOfRangeError
from ember_ml.backend import native_softplus_linear
from ember_ml.backend.numpy import kernel_calls
from ember_ml.backend.numpy.native import frame
from ember_ml.backend.numpy.ops.nn._kernel import kernel


@kernel
def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    rows = x.reshape(
        math.prod(x.shape[:-1]), x.shape[-1]
    )  # one matrix product instead of one per matrix
    out = np.matmul(rows, weight.T)
    if bias is not None:
        out += bias
    return out.reshape(*x.shape[:-1], weight.shape[0])


def softplus_linear(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
) -> np.ndarray | None:
    if not native_softplus_linear.fits(x, weight, bias, kernel_calls.SMALL):
        return None
    access = frame(x, weight, bias)
    return None if access is None else native_softplus_linear.forward(access, x, weight, bias)


def embedding(weight: np.ndarray, indices: np.ndarray) -> np.ndarray:
    if indices.dtype.kind not in "iu":
        raise ArgumentTypeError(f"embedding: indices must be integers, not {indices.dtype}")
    if indices.size and (indices.min() < 0 or indices.max() >= weight.shape[0]):
        raise IndexOutOfRangeError(
            f"embedding: indices {indices.min()} to {indices.max()} into {weight.shape[0]} rows"
        )
    return weight[indices]


def one_hot(
    x: np.ndarray, num_classes: int, axis: int = -1, dtype: np.dtype | None = None
) -> np.ndarray:
    dtype = np.float32 if dtype is None else dtype
    if num_classes < 0:
        raise ValueError("num_classes must not be negative")
    return np.moveaxis(
        (np.asarray(x)[..., None] == np.arange(operator.index(num_classes))).astype(dtype), -1, axis
    )
