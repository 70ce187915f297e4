"""Helpers shared by the VJP rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from ember_ml import ops
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.backend.axes import folded_shape

Value = TypeVar("Value", Tensor, complex)


def conj(x: Value) -> Value:
    """Return the complex conjugate of a tensor or number; a real one is returned as it is."""
    if isinstance(x, EmberTensor):
        return ops.conj(x) if "complex" in x._tag else x
    return x.conjugate() if type(x) is complex else x


def unbroadcast(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a gradient summed over the axes along which an operand of `shape` was broadcast."""
    given = g.shape
    if given == shape:
        return g
    extra = len(given) - len(shape)
    if extra == 1 and given[1:] == shape:  # a bias
        return ops.sum(g, 0)
    if extra < 0:
        return ops.broadcast_to(g, shape)
    axes = tuple(range(extra)) + tuple(
        extra + axis for axis, size in enumerate(shape) if size == 1 and given[extra + axis] != 1
    )
    g = ops.sum(g, axis=axes) if axes else g
    return ops.reshape(g, shape) if g.shape != shape else g


def with_keepdims(
    x: Tensor, like: Tensor, axis: int | Sequence[int] | None, keepdims: bool
) -> Tensor:
    """Return a reduced tensor with the reduced axes of `like` as axes of size 1."""
    if keepdims or axis is None:
        return x
    return ops.reshape(x, folded_shape(like.shape, axis, True))


def flat_rows(x: Tensor) -> Tensor:
    """Return x as a matrix: all axes but the last become one."""
    return x if x.ndim == 2 else ops.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def adjoint(x: Tensor) -> Tensor:
    """Return the conjugate transpose over the last two axes."""
    return ops.matrix_transpose(conj(x))
