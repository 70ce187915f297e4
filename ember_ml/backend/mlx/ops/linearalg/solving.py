"""Linear systems, solved on the CPU. Values are not read, so a singular matrix yields NaN."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.ops.linearalg.complex_matrices import blocks
from ember_ml.backend.mlx.ops.linearalg.decompositions import svd
from ember_ml.backend.mlx.ops.linearalg.diagonals import diagonal
from ember_ml.backend.mlx.ops.linearalg.precision import square, where_matrix, widened


def _regular(triangle: Any) -> tuple[Any, Any]:
    """Return the triangular matrix, with the identity for singular ones, and which are regular."""
    usable = (diagonal(triangle) != 0).all(axis=-1)
    return where_matrix(usable, triangle, mx.eye(triangle.shape[-1], dtype=triangle.dtype)), usable


def _solve_real(x: mx.array, y: mx.array) -> mx.array:
    """Solve x z = y by LU; MLX's `solve` fails at evaluation if x is singular."""
    order, lower, upper = mx.linalg.lu(x, stream=mx.cpu)
    upper, usable = _regular(upper)
    batch = mx.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    rows = mx.broadcast_to(mx.argsort(order, axis=-1)[..., None], (*batch, x.shape[-1], 1))
    z = mx.take_along_axis(mx.broadcast_to(y, (*batch, *y.shape[-2:])), rows, -2)
    z = mx.linalg.solve_triangular(lower, z, stream=mx.cpu)
    z = mx.linalg.solve_triangular(upper, z, upper=True, stream=mx.cpu)
    return where_matrix(mx.broadcast_to(usable, batch), z, mx.nan)


def _solve(x: mx.array, y: mx.array) -> mx.array:
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(
            "the shapes must be those of a matrix and a right-hand side with equally many rows"
        )
    batch = mx.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    if 0 in (*x.shape, *y.shape):  # MLX crashes for 0 x 0 matrices
        return mx.zeros((*batch, *y.shape[-2:]), x.dtype)
    if x.dtype != mx.complex64:
        return _solve_real(x, y)
    z = _solve_real(blocks(x), mx.concatenate([mx.real(y), mx.imag(y)], -2))
    real, imag = mx.split(z, 2, axis=-2)
    return real + 1j * imag


@widened
@square
def solve(x: mx.array, y: mx.array) -> mx.array:
    return _solve(x, y[:, None]).squeeze(-1) if y.ndim == 1 else _solve(x, y)


@widened
@square
def inv(x: mx.array) -> mx.array:
    return _solve(x, mx.eye(x.shape[-1], dtype=x.dtype))


@widened
@square
def solve_triangular(
    x: mx.array, y: mx.array, upper: bool = False, unit_diagonal: bool = False
) -> mx.array:
    triangle = mx.triu(x) if upper else mx.tril(x)
    if unit_diagonal:
        triangle = mx.where(mx.eye(x.shape[-1], dtype=mx.bool_), 1, triangle)
    if 0 in (*x.shape, *y.shape) or x.dtype == mx.complex64:
        return solve(triangle, y)
    triangle, usable = _regular(triangle)
    columns = y[:, None] if y.ndim == 1 else y
    z = mx.linalg.solve_triangular(triangle, columns, upper=upper, stream=mx.cpu)
    z = where_matrix(mx.broadcast_to(usable, z.shape[:-2]), z, mx.nan)
    return z.squeeze(-1) if y.ndim == 1 else z


def pinv(x: mx.array, rtol: mx.array | None = None) -> mx.array:
    if rtol is None:
        dtype = mx.float32 if x.dtype == mx.complex64 else x.dtype
        rtol = mx.array(max(x.shape[-2:]) * mx.finfo(dtype).eps)
    return _pinv(x, rtol)


@widened
def _pinv(x: mx.array, rtol: Any) -> mx.array:
    if 0 in x.shape:
        return x.swapaxes(-2, -1)
    u, values, vh = svd(x, full_matrices=False)
    significant = values > values.max(axis=-1, keepdims=True) * rtol[..., None]
    inverse = mx.where(significant, 1 / mx.where(significant, values, 1), 0)
    v, uh = mx.conjugate(vh.swapaxes(-2, -1)), mx.conjugate(u.swapaxes(-2, -1))
    return (v * inverse[..., None, :]) @ uh
