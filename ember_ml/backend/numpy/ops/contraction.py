"""Contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import dot as dot
from numpy import inner as inner
from numpy import kron as kron
from numpy import matmul as matmul
from numpy import vdot as vdot
from numpy.linalg import cross as cross
from numpy.linalg import outer as outer
from numpy.linalg import vecdot as vecdot

from ember_ml._core.errors import ArgumentTypeError


def tensordot(
    x: np.ndarray, y: np.ndarray, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> np.ndarray:
    """Return the sum of products over several axes."""
    if isinstance(axes, int) and axes < 0:
        raise ValueError("the number of axes is negative")
    return np.tensordot(x, y, axes)


def bmm(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.ndim != 3 or y.ndim != 3 or x.shape[0] != y.shape[0]:
        raise ValueError("the shapes must be those of two stacks with equally many matrices")
    return np.matmul(x, y)


def matvec(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.ndim < 2 or y.ndim == 0:
        raise ValueError("the shapes must be those of matrices and vectors")
    return np.matmul(x, y[..., None])[..., 0]


def addmm(
    input: np.ndarray, x: np.ndarray, y: np.ndarray, alpha: float = 1, beta: float = 1
) -> np.ndarray:
    """Return beta * input + alpha * (x @ y)."""
    product = np.matmul(x, y)
    out = product * alpha if beta == 0 else product * alpha + input * beta
    if out.dtype != x.dtype:
        raise ArgumentTypeError(f"addmm: alpha={alpha} and beta={beta} do not fit {x.dtype}")
    if out.shape != product.shape:
        raise ValueError(f"input does not broadcast to the product's shape {product.shape}")
    return out


def _einsum(tensors: list[Any], subscripts: str) -> np.ndarray:
    return np.einsum(subscripts, *tensors, optimize=len(tensors) > 1)
