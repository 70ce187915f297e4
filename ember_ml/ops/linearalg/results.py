"""What the decompositions return: tuples whose parts have names."""

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
    """x V = V diag(w): complex eigenvalues in no order, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """x = Q R: columns that are orthonormal, and an upper triangle."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """x = U diag(S) Vh: singular vectors, and the singular values in descending order."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LUResult(NamedTuple):
    """x = P L U: a permutation, a lower triangle with ones on its diagonal, an upper triangle."""

    P: Tensor
    L: Tensor
    U: Tensor


class SlogdetResult(NamedTuple):
    """det(x) = sign * exp(logabsdet)."""

    sign: Tensor
    logabsdet: Tensor


class LstsqResult(NamedTuple):
    """The least-squares solution, the sum of squared residuals of each column, rank, and S of x."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
