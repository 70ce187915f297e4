"""Diagonals and matrices built from them."""

from __future__ import annotations

from ember_ml._core.dispatch import composite, op
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike, TensorsLike
from ember_ml.ops.manipulation import reshape
from ember_ml.ops.reduction import sum

__all__ = ["block_diag", "diag", "diag_embed", "diagflat", "diagonal", "trace"]


@op
def diagonal(x: TensorLike, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """Return a diagonal of the matrices in two axes, as the last axis.

    Args:
        x: Input tensor.
        offset: Diagonal; positive values are above the main diagonal.
        axis1: Axis of the rows.
        axis2: Axis of the columns.
    """


@op
def diag_embed(x: TensorLike, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """Return matrices with the last axis of x on a diagonal and zeros elsewhere.

    Args:
        x: Input tensor.
        offset: Diagonal; positive values are above the main diagonal.
        axis1: Axis of the rows in the result.
        axis2: Axis of the columns in the result.
    """


@composite
def diag(x: TensorLike, k: int = 0) -> Tensor:
    """Return the k-th diagonal of a matrix, or a matrix with a vector on its k-th diagonal.

    Args:
        x: Vector or matrix.
        k: Diagonal; positive values are above the main diagonal.
    """
    if x.ndim not in (1, 2):
        raise ShapeError(f"diag: x has shape {x.shape}; expected a vector or a matrix")
    return diag_embed(x, k) if x.ndim == 1 else diagonal(x, k)


@composite
def diagflat(x: TensorLike, k: int = 0) -> Tensor:
    """Return a matrix with all elements of x, in order, on its k-th diagonal.

    Args:
        x: Input tensor.
        k: Diagonal; positive values are above the main diagonal.
    """
    return diag_embed(reshape(x, (-1,)) if x.size else reshape(x, (0,)), k)


@composite
def trace(x: TensorLike, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Return the sum of a diagonal of each matrix.

    Args:
        x: Matrices, (..., m, n).
        offset: Diagonal; positive values are above the main diagonal.
        dtype: Data type to compute in. Default: as in `sum`.
    """
    return sum(diagonal(x, offset), axis=-1, dtype=dtype)


@op
def _block_diag(tensors: TensorsLike) -> Tensor:
    """Compute `block_diag`."""


def block_diag(*tensors: TensorLike) -> Tensor:
    """Return a block-diagonal matrix.

    Args:
        tensors: Matrices along the diagonal; a vector is a row.
    """
    return _block_diag(tensors)
