"""Contractions. MLX has them for floats only; `integer_products` handles integers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import mlx.core as mx

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.backend.mlx.ops.integer_products import INTEGERS, exact, exact_einsum

_inner = partial(mx.inner, stream=mx.cpu)
_matmul = partial(mx.matmul, stream=mx.cpu)


def matmul(x: mx.array, y: mx.array) -> mx.array:
    """Return the matrix product; catch MLX's error for integers instead of checking every call."""
    try:
        return mx.matmul(x, y)
    except ValueError:
        if x.dtype not in INTEGERS:
            raise
        return exact(_matmul, x, y)


def bmm(x: mx.array, y: mx.array) -> mx.array:
    if x.ndim != 3 or y.ndim != 3 or x.shape[0] != y.shape[0]:
        raise ValueError("the shapes must be those of two stacks with equally many matrices")
    return matmul(x, y)


def matvec(x: mx.array, y: mx.array) -> mx.array:
    if x.ndim < 2 or y.ndim == 0:
        raise ValueError("the shapes must be those of matrices and vectors")
    return matmul(x, mx.expand_dims(y, -1)).squeeze(-1)


def inner(x: mx.array, y: mx.array) -> mx.array:
    """Return the sum of products over the last axis of both."""
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    return exact(_inner, x, y) if x.dtype in INTEGERS else mx.inner(x, y)


def outer(x: mx.array, y: mx.array) -> mx.array:
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError("the shapes must be those of vectors")
    return mx.outer(x, y)


def _conj(x: mx.array) -> mx.array:
    return mx.conjugate(x) if x.dtype == mx.complex64 else x


def vdot(x: mx.array, y: mx.array) -> mx.array:
    """Return the sum of conj(x) * y over all elements."""
    if x.size != y.size:
        raise ValueError("the sizes differ")
    return matmul(_conj(x.reshape(-1)), y.reshape(-1))


def vecdot(x: mx.array, y: mx.array, axis: int = -1) -> mx.array:
    """Return the sum of conj(x) * y along an axis."""
    x, y = mx.moveaxis(x, axis, -1), mx.moveaxis(y, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"the axis has length {x.shape[-1]} in x and {y.shape[-1]} in y")
    return matmul(mx.expand_dims(_conj(x), -2), mx.expand_dims(y, -1)).squeeze((-2, -1))


def kron(x: mx.array, y: mx.array) -> mx.array:
    """Return the Kronecker product; MLX's own fails on empty arrays."""
    if x.size and y.size:
        return mx.kron(x, y)
    ndim = max(x.ndim, y.ndim)
    lengths = [(1,) * (ndim - part.ndim) + part.shape for part in (x, y)]
    return mx.zeros([first * second for first, second in zip(*lengths, strict=True)], x.dtype)


def cross(x: mx.array, y: mx.array, axis: int = -1) -> mx.array:
    """Return the cross products of vectors of length 3 along an axis."""
    x, y = mx.moveaxis(x, axis, -1), mx.moveaxis(y, axis, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ValueError("the axis must have length 3 in both")
    return mx.moveaxis(mx.linalg.cross(x, y), -1, axis)


def tensordot(x: mx.array, y: mx.array, axes: int | Sequence[int | Sequence[int]] = 2) -> mx.array:
    """Return the sum of products over several axes."""
    if not isinstance(axes, int):
        axes = [[part] if isinstance(part, int) else list(part) for part in axes]
    elif not 0 <= axes <= min(x.ndim, y.ndim):
        raise ValueError("axes exceeds the number of axes of x or y")
    if x.dtype in INTEGERS:
        return exact(partial(mx.tensordot, axes=axes, stream=mx.cpu), x, y)
    return mx.tensordot(x, y, axes)


def addmm(input: mx.array, x: mx.array, y: mx.array, alpha: float = 1, beta: float = 1) -> mx.array:
    """Return beta * input + alpha * (x @ y)."""
    product = matmul(x, y)
    out = product * alpha if beta == 0 else product * alpha + input * beta
    if out.dtype != x.dtype:
        raise ArgumentTypeError(f"addmm: alpha={alpha} and beta={beta} do not fit {x.dtype}")
    if out.shape != product.shape:
        raise ValueError(f"input does not broadcast to the product's shape {product.shape}")
    return out


def _einsum(tensors: list[Any], subscripts: str) -> mx.array:
    if tensors[0].dtype in INTEGERS:
        return exact_einsum(tensors, subscripts)
    return mx.einsum(subscripts, *tensors)
