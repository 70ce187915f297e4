"""Decompositions of complex matrices; MLX has LAPACK's real ones only."""

from __future__ import annotations

from typing import Any

import mlx.core as mx


def blocks(x: mx.array) -> mx.array:
    """Return the real matrix ((a, -b), (b, a)) of x = a + ib, which preserves products."""
    real, imag = mx.real(x), mx.imag(x)
    rows = mx.concatenate([real, -imag], -1), mx.concatenate([imag, real], -1)
    return mx.concatenate(rows, -2)


def cholesky(x: mx.array) -> mx.array:
    """Return L of x = L L^H, from the real form with ((a, -b), (b, a)) for each number."""
    size = x.shape[-1]
    real, imag = mx.real(x), mx.imag(x)
    cells = mx.stack([mx.stack([real, -imag], -1), mx.stack([imag, real], -1)], -2)
    spread = cells.swapaxes(-3, -2).reshape(*x.shape[:-2], 2 * size, 2 * size)
    lower = mx.linalg.cholesky(spread, stream=mx.cpu).reshape(*x.shape[:-2], size, 2, size, 2)
    return lower[..., 0, :, 0] + 1j * lower[..., 1, :, 0]


def qr(x: mx.array, width: int) -> tuple[Any, Any]:
    """Return Q with `width` columns and R with a real diagonal, by Householder reflections."""
    rows, columns = x.shape[-2:]
    q = mx.broadcast_to(mx.eye(rows, dtype=x.dtype), (*x.shape[:-2], rows, rows))
    scale = mx.abs(x).max(axis=(-2, -1), keepdims=True) if x.size else mx.ones(())
    scale = mx.where(scale == 0, 1, scale)
    r = x / scale  # so that no square overflows
    index = mx.arange(rows)
    for k in range(min(rows, columns)):
        column = mx.where(index >= k, r[..., k], 0)
        length = mx.linalg.norm(column, axis=-1, keepdims=True)
        vector = (column + mx.where(index == k, _phase(r[..., k, k, None]) * length, 0))[..., None]
        squared = mx.square(mx.abs(vector)).sum(axis=-2, keepdims=True)
        scaled = 2 * vector / mx.where(squared == 0, 1, squared)
        adjoint = mx.conjugate(vector.swapaxes(-2, -1))
        r = r - scaled @ (adjoint @ r)
        q = q - (q @ scaled) @ adjoint
    phase = mx.where(index < min(rows, columns), _phase(_padded_diagonal(r)), 1)
    q, r = q * phase[..., None, :], r * mx.conjugate(phase)[..., None] * scale
    return q[..., :width], mx.triu(r)[..., :width, :]


def _phase(x: mx.array) -> mx.array:
    """Return x / |x|, and 1 for 0."""
    size = mx.abs(x)
    return mx.where(size == 0, 1, x / mx.where(size == 0, 1, size))


def _padded_diagonal(x: mx.array) -> mx.array:
    """Return the diagonal of x, padded to the number of rows."""
    diagonal = mx.diagonal(x, 0, -2, -1)
    missing = x.shape[-2] - diagonal.shape[-1]
    return mx.pad(diagonal, [(0, 0)] * (x.ndim - 2) + [(0, missing)])


def lu(x: mx.array) -> tuple[Any, Any, Any]:
    """Return the row order p, L and U with x = L[p] U, by elimination with partial pivoting."""
    rows, columns = x.shape[-2:]
    steps = min(rows, columns)
    index = mx.arange(rows)
    order = mx.broadcast_to(index, x.shape[:-1])
    work, factors = x, mx.zeros_like(x[..., :0])
    for k in range(steps):
        column = work[..., k]
        size = mx.where(index >= k, mx.abs(mx.real(column)) + mx.abs(mx.imag(column)), -1)
        pivot = mx.argmax(size, axis=-1, keepdims=True).astype(index.dtype)
        swap = mx.where(index == k, pivot, mx.where(index == pivot, k, index))
        work, factors = (mx.take_along_axis(part, swap[..., None], -2) for part in (work, factors))
        order = mx.take_along_axis(order, swap, -1)
        head = work[..., k, k, None]
        factor = mx.where(index > k, work[..., k] / mx.where(head == 0, 1, head), 0)
        work = work - factor[..., None] * work[..., k, None, :]
        factors = mx.concatenate([factors, factor[..., None]], -1)
    lower = factors + mx.eye(rows, steps, dtype=x.dtype)
    return mx.argsort(order, axis=-1), lower, mx.triu(work)[..., :steps, :]
