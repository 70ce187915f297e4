"""Matrix decompositions. LAPACK runs on the CPU, independent of the default device.

MLX computes values only when they are read, so no error can be raised here: the result is NaN for a
matrix that has no decomposition.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import mlx.core as mx

from ember_ml._core.errors import ArgumentError
from ember_ml.backend.mlx.ops.linearalg import complex_matrices
from ember_ml.backend.mlx.ops.linearalg.diagonals import diagonal
from ember_ml.backend.mlx.ops.linearalg.precision import finite, square, where_matrix, widened

_CPU = mx.cpu

eigvals = widened(square(finite(partial(mx.linalg.eigvals, stream=_CPU))))
eigh = widened(square(finite(partial(mx.linalg.eigh, stream=_CPU))))
eigvalsh = widened(square(finite(partial(mx.linalg.eigvalsh, stream=_CPU))))
svdvals = widened(finite(partial(mx.linalg.svd, compute_uv=False, stream=_CPU)))


@widened
@square
@finite
def eig(x: mx.array) -> Any:
    """Return eigenvalues and eigenvectors; MLX (0.32) returns the conjugates for complex x."""
    values, vectors = mx.linalg.eig(x, stream=_CPU)
    if x.dtype != mx.complex64 or x.size == 0:
        return values, vectors
    choices = vectors, mx.conjugate(vectors)
    errors = [mx.abs(x @ v - v * values[..., None, :]).sum(axis=(-2, -1)) for v in choices]
    return values, where_matrix(errors[0] <= errors[1], *choices)


@widened
@square
def cholesky(x: mx.array, upper: bool = False) -> mx.array:
    """Return L of x = L L^H; NaN if the matrix is not positive definite."""
    if x.dtype == mx.complex64:
        lower = complex_matrices.cholesky(x)
    else:
        lower = mx.linalg.cholesky(x, stream=_CPU)
    values = mx.real(diagonal(lower))
    lower = where_matrix((values > 0).all(axis=-1), lower, mx.nan)
    return mx.conjugate(lower.swapaxes(-2, -1)) if upper else lower


@widened
def qr(x: mx.array, mode: str = "reduced") -> Any:
    """Return Q and R; MLX has the reduced form only, which for (x, 1) is complete."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f'qr: mode must be "reduced" or "complete", not {mode!r}')
    rows, columns = x.shape[-2:]
    if x.dtype == mx.complex64:
        return complex_matrices.qr(x, rows if mode == "complete" else min(rows, columns))
    if mode == "reduced" or rows <= columns:
        return tuple(mx.linalg.qr(x, stream=_CPU))
    identity = mx.broadcast_to(mx.eye(rows), (*x.shape[:-2], rows, rows))
    q, r = mx.linalg.qr(mx.concatenate([x, identity], -1), stream=_CPU)
    return q, r[..., :columns]


@widened
@finite
def svd(x: mx.array, full_matrices: bool = True) -> Any:
    """Return U, S and Vh; MLX's U and Vh are square, so a long matrix is reduced to its R first."""
    rows, columns = x.shape[-2:]
    if full_matrices or rows == columns:
        return tuple(mx.linalg.svd(x, stream=_CPU))
    if rows < columns:
        u, s, vh = svd(x.swapaxes(-2, -1), full_matrices=False)
        return vh.swapaxes(-2, -1), s, u.swapaxes(-2, -1)
    q, r = qr(x)
    u, s, vh = mx.linalg.svd(r, stream=_CPU)
    return q @ u, s, vh


@widened
def lu(x: mx.array) -> Any:
    """Return the factors of x = P L U."""
    rows, columns = x.shape[-2:]
    if x.size == 0:  # MLX crashes for 0 x 0 matrices
        parts = (rows, rows), (rows, min(rows, columns)), (min(rows, columns), columns)
        return tuple(
            [
                mx.broadcast_to(mx.eye(*part, dtype=x.dtype), (*x.shape[:-2], *part))
                for part in parts
            ]
        )
    order, lower, upper = (
        complex_matrices.lu(x) if x.dtype == mx.complex64 else mx.linalg.lu(x, stream=_CPU)
    )
    return mx.eye(rows, dtype=x.dtype)[order], lower, upper
