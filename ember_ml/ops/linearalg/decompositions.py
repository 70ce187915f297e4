"""Matrices as products of simpler ones; all take stacks of matrices.

Half precision is computed in float32. What has no decomposition raises LinAlgError; on MLX, which
computes when the values are read, the result is NaN instead.
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
    """The lower triangle L with x = L L^H of a positive definite matrix; with `upper`, its L^H."""


@op(rule=rules.FLOAT)
def qr(x: TensorLike, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """The factors of x = Q R.

    Args:
        mode: "reduced" gives Q as many columns as x has rows or columns, whichever are fewer;
            "complete" as many as x has rows.
    """


@op(rule=rules.FLOAT)
def lu(x: TensorLike) -> LUResult:
    """The factors of x = P L U, by elimination with partial pivoting."""


@op(rule=rules.FLOAT)
def svd(x: TensorLike, full_matrices: bool = True) -> SVDResult:
    """The factors of x = U diag(S) Vh.

    Args:
        full_matrices: whether U and Vh are square; else they are cut to the length of S.
    """


@unary(rule=rules.FLOAT)
def svdvals(x: TensorLike) -> Tensor:
    """The singular values, in descending order."""


@op(rule=rules.FLOAT)
def eigh(x: TensorLike) -> EighResult:
    """The eigenvalues and eigenvectors of a Hermitian matrix, of which the lower half is read."""


@unary(rule=rules.FLOAT)
def eigvalsh(x: TensorLike) -> Tensor:
    """The eigenvalues of a Hermitian matrix, in ascending order; its lower half is read."""


@op(rule=rules.FLOAT)
def eig(x: TensorLike) -> EigResult:
    """The eigenvalues and eigenvectors of a square matrix, always complex."""


@unary(rule=rules.FLOAT)
def eigvals(x: TensorLike) -> Tensor:
    """The eigenvalues of a square matrix, always complex."""
