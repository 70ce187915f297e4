"""Matrix decompositions; all take batches of matrices.

Half precision is computed in float32. A matrix without the decomposition raises LinAlgError. MLX
is lazy and returns NaN instead.
"""

from __future__ import annotations

from typing import Literal

from ember_ml._core import rules
from ember_ml._core.dispatch import op, unary
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.linearalg.results import EighResult, EigResult, LUResult, QRResult, SVDResult

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "lu", "qr", "svd", "svdvals"]


@op(rule=rules.FLOAT)
def cholesky(x: TensorLike, upper: bool = False) -> Tensor:
    """Return the Cholesky factor L of a positive definite matrix x = L L^H.

    Args:
        x: Positive definite matrices, (..., n, n).
        upper: Whether to return L^H instead of L.
    """


@op(rule=rules.FLOAT)
def qr(x: TensorLike, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Return the QR decomposition x = Q R.

    Args:
        x: Matrices, (..., m, n).
        mode: "reduced" returns Q with min(m, n) columns, "complete" with m columns.
    """


@op(rule=rules.FLOAT)
def lu(x: TensorLike) -> LUResult:
    """Return the LU decomposition x = P L U with partial pivoting.

    Args:
        x: Matrices, (..., m, n).
    """


@op(rule=rules.FLOAT)
def svd(x: TensorLike, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decomposition x = U diag(S) Vh.

    Args:
        x: Matrices, (..., m, n).
        full_matrices: Whether U and Vh are square; else they have min(m, n) columns and rows.
    """


@unary(rule=rules.FLOAT)
def svdvals(x: TensorLike) -> Tensor:
    """Return the singular values in descending order.

    Args:
        x: Matrices, (..., m, n).
    """


@op(rule=rules.FLOAT)
def eigh(x: TensorLike) -> EighResult:
    """Return the eigenvalues and eigenvectors of a Hermitian matrix.

    Args:
        x: Hermitian matrices, (..., n, n); only the lower triangle is read.
    """


@unary(rule=rules.FLOAT)
def eigvalsh(x: TensorLike) -> Tensor:
    """Return the eigenvalues of a Hermitian matrix, in ascending order.

    Args:
        x: Hermitian matrices, (..., n, n); only the lower triangle is read.
    """


@op(rule=rules.FLOAT)
def eig(x: TensorLike) -> EigResult:
    """Return the complex eigenvalues and eigenvectors of a square matrix.

    Args:
        x: Square matrices, (..., n, n).
    """


@unary(rule=rules.FLOAT)
def eigvals(x: TensorLike) -> Tensor:
    """Return the complex eigenvalues of a square matrix.

    Args:
        x: Square matrices, (..., n, n).
    """
