"""Named tuples that the decompositions return."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml._core.tensor import Tensor

__all__ = [
    "EigResult",
    "EighResult",
    "LUResult",
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
]


class EighResult(NamedTuple):
    """x = V diag(w) V^H: real eigenvalues in ascending order, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """x V = V diag(w): complex eigenvalues in arbitrary order, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """x = Q R: orthonormal columns, and an upper triangular matrix."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """x = U diag(S) Vh: singular vectors, and the singular values in descending order."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LUResult(NamedTuple):
    """x = P L U: permutation, unit lower triangular and upper triangular matrix."""

    P: Tensor
    L: Tensor
    U: Tensor


class SlogdetResult(NamedTuple):
    """det(x) = sign * exp(logabsdet)."""

    sign: Tensor
    logabsdet: Tensor


class LstsqResult(NamedTuple):
    """Least-squares solution, squared residuals per column, rank and singular values of x."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
