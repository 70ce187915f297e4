"""Diagonals: taken from matrices, and made into them."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml._core.dispatch import composite, op
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike
from ember_ml.ops.manipulation import reshape
from ember_ml.ops.reduction import sum

__all__ = ["block_diag", "diag", "diag_embed", "diagflat", "diagonal", "trace"]


@op
def diagonal(x: TensorLike, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """The diagonal of the matrices in two axes, as the last axis; with offset > 0, one above it."""


@op
def diag_embed(x: TensorLike, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """Matrices, in two axes of the result, with the last axis of x on a diagonal, else 0."""


@composite
def diag(x: TensorLike, k: int = 0) -> Tensor:
    """The k-th diagonal of a matrix, or a matrix with a vector on its k-th diagonal."""
    if x.ndim not in (1, 2):
        raise ShapeError(f"diag takes a vector or a matrix; the shape is {x.shape}")
    return diag_embed(x, k) if x.ndim == 1 else diagonal(x, k)


@composite
def diagflat(x: TensorLike, k: int = 0) -> Tensor:
    """A matrix with all elements of x, in order, on its k-th diagonal."""
    return diag_embed(reshape(x, (-1,)) if x.size else reshape(x, (0,)), k)


@composite
def trace(x: TensorLike, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of a diagonal of each matrix; dtypes as in `sum`."""
    return sum(diagonal(x, offset), axis=-1, dtype=dtype)


@op
def _block_diag(tensors: Sequence[TensorLike]) -> Tensor:
    """What `block_diag` computes."""


def block_diag(*tensors: TensorLike) -> Tensor:
    """A matrix with the given matrices along its diagonal, and 0 elsewhere; a vector is a row."""
    return _block_diag(tensors)
