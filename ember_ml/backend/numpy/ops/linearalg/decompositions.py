"""Matrix decompositions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ember_ml._core.errors import ArgumentError
from ember_ml.backend.numpy.ops.linearalg.precision import square, widened


@widened
@square
def cholesky(x: np.ndarray, upper: bool = False) -> np.ndarray:
    """Return the triangular factor L of x = L L^H."""
    return np.linalg.cholesky(x, upper=upper)


@widened
def qr(x: np.ndarray, mode: str = "reduced") -> Any:
    """Return the factors of x = Q R."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f'qr: mode must be "reduced" or "complete", not {mode!r}')
    return tuple(np.linalg.qr(x, mode))


@widened
def svd(x: np.ndarray, full_matrices: bool = True) -> Any:
    """Return the factors of x = U diag(S) Vh."""
    return tuple(np.linalg.svd(x, full_matrices))


@widened
def svdvals(x: np.ndarray) -> np.ndarray:
    return np.linalg.svd(x, compute_uv=False)


@widened
@square
def eigh(x: np.ndarray) -> Any:
    """Return the eigenvalues and eigenvectors of a Hermitian matrix."""
    return tuple(np.linalg.eigh(x))


@widened
@square
def eigvalsh(x: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of a Hermitian matrix."""
    return np.linalg.eigvalsh(x)


@widened
@square
def eig(x: np.ndarray) -> Any:
    """Return complex eigenvalues and eigenvectors; NumPy returns real ones if possible."""
    dtype = np.result_type(x.dtype, np.complex64)
    return tuple([part.astype(dtype) for part in np.linalg.eig(x)])


@widened
@square
def eigvals(x: np.ndarray) -> np.ndarray:
    """Return complex eigenvalues; NumPy returns real ones if possible."""
    return np.linalg.eigvals(x).astype(np.result_type(x.dtype, np.complex64))


def _size(x: np.ndarray) -> np.ndarray:
    """Return |real| + |imag|, by which LAPACK chooses pivots."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


@widened
def lu(x: np.ndarray) -> Any:
    """Return P, L and U, column by column for the whole batch; NumPy has no LU."""
    rows, columns = x.shape[-2:]
    steps = min(rows, columns)
    work = x.reshape(math.prod(x.shape[:-2]), rows, columns).copy()  # L below the diagonal, U above
    order = np.tile(np.arange(rows), (len(work), 1))
    stack = np.arange(len(work))
    for k in range(steps):
        pivot = k + _size(work[:, k:, k]).argmax(1)
        for array in (work, order):
            array[stack, k], array[stack, pivot] = array[stack, pivot], array[stack, k].copy()
        head = work[:, k, k, None]
        work[:, k + 1 :, k] /= np.where(head == 0, 1, head)
        work[:, k + 1 :, k + 1 :] -= work[:, k + 1 :, k, None] * work[:, k, None, k + 1 :]
    permutation = np.swapaxes(np.eye(rows, dtype=x.dtype)[order], -2, -1)
    lower = np.tril(work[:, :, :steps], -1) + np.eye(rows, steps, dtype=x.dtype)
    parts = permutation, lower, np.triu(work[:, :steps])
    return tuple([part.reshape(*x.shape[:-2], *part.shape[1:]) for part in parts])
