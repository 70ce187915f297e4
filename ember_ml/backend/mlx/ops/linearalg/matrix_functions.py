"""Determinants, computed on the CPU."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.ops.linearalg.decompositions import eigvals
from ember_ml.backend.mlx.ops.linearalg.precision import square, widened


@widened
@square
def det(x: mx.array) -> mx.array:
    """Return the determinant; from the eigenvalues if x is complex, since MLX has no complex LU."""
    if x.dtype == mx.complex64:
        return eigvals(x).prod(axis=-1)
    return mx.linalg.det(x, stream=mx.cpu)


@widened
@square
def slogdet(x: mx.array) -> Any:
    """Return the sign and the log of the absolute value of the determinant."""
    if x.dtype != mx.complex64:
        return tuple(mx.linalg.slogdet(x, stream=mx.cpu))
    values = eigvals(x)
    size = mx.abs(values)
    phases = mx.where(size == 0, 0, values / mx.where(size == 0, 1, size))
    return phases.prod(axis=-1), mx.log(size).sum(axis=-1)
