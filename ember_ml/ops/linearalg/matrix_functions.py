"""Determinants, powers, exponentials and ranks of batches of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml._core import rules
from ember_ml._core.dispatch import MaskLike, composite, op, unary
from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._composite import default_rtol, narrowed, widened
from ember_ml.ops.comparison import greater
from ember_ml.ops.complex_numbers import conj
from ember_ml.ops.contraction import matmul
from ember_ml.ops.creation import ones_like
from ember_ml.ops.elementwise import abs, add, divide, multiply, pow, subtract
from ember_ml.ops.exponential import log2
from ember_ml.ops.indexing import where
from ember_ml.ops.linearalg.decompositions import svd, svdvals
from ember_ml.ops.linearalg.diagonals import diag_embed, diagonal
from ember_ml.ops.linearalg.results import SlogdetResult
from ember_ml.ops.linearalg.solving import inv, solve
from ember_ml.ops.manipulation import expand_dims, matrix_transpose
from ember_ml.ops.reduction import count_nonzero, max, sum
from ember_ml.ops.rounding import ceil, clip

__all__ = [
    "det",
    "expm",
    "matrix_exp",
    "matrix_power",
    "matrix_rank",
    "null_space",
    "orth",
    "slogdet",
]


@unary(rule=rules.FLOAT)
def det(x: TensorLike) -> Tensor:
    """Return the determinant.

    Args:
        x: Square matrices, (..., n, n).
    """


@op(rule=rules.FLOAT)
def slogdet(x: TensorLike) -> SlogdetResult:
    """Return the sign and the logarithm of the absolute value of the determinant.

    A singular matrix returns 0 and -inf.

    Args:
        x: Square matrices, (..., n, n).
    """


def _check_square(op_name: str, x: Tensor) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{op_name}: x has shape {x.shape}; expected square matrices")


def identity_like(x: Tensor) -> Tensor:
    """Return the identity for each square matrix of x."""
    return diag_embed(ones_like(diagonal(x)))


@composite(rule=rules.FLOAT)
def matrix_power(x: TensorLike, n: int) -> Tensor:
    """Return the n-th power of a square matrix.

    Args:
        x: Square matrices, (..., n, n).
        n: Exponent; negative values raise the inverse to the power -n.
    """
    _check_square("matrix_power", x)
    if type(n) is not int:
        raise ArgumentTypeError(f"matrix_power: n must be an int; got {n!r}")
    square = inv(widened(x)) if n < 0 else widened(x)
    out: Tensor | None = None
    rest = -n if n < 0 else n
    while rest:
        if rest & 1:
            out = square if out is None else matmul(out, square)
        rest >>= 1
        square = matmul(square, square) if rest else square
    return narrowed(identity_like(square) if out is None else out, x)


MAX_SQUARINGS = 16
PADE_RADIUS = 5.371920351148152
"""1-norm below which the Pade approximant of degree 13 is exact to float64."""
PADE = [1.0]
"""Coefficients of the approximant, from the constant up."""
for _k in range(13):
    PADE.append(PADE[-1] * (13 - _k) / ((26 - _k) * (_k + 1)))


def _polynomial(powers: Sequence[Tensor], coefficients: Sequence[float]) -> Tensor:
    """Return the sum of the powers weighted by the coefficients."""
    out = multiply(powers[0], coefficients[0])
    for power, coefficient in zip(powers[1:], coefficients[1:], strict=True):
        out = add(out, multiply(power, coefficient))
    return out


def _pade(x: Tensor) -> Tensor:
    """Return the exponential of a small matrix: (V - U)^-1 (V + U), U odd powers, V even powers."""
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    low, high = (identity_like(x), x2, x4, x6), (x2, x4, x6)
    odd = add(matmul(x6, _polynomial(high, PADE[9::2])), _polynomial(low, PADE[1:9:2]))
    even = add(matmul(x6, _polynomial(high, PADE[8::2])), _polynomial(low, PADE[0:8:2]))
    odd = matmul(x, odd)
    return solve(subtract(even, odd), add(even, odd))


@composite(rule=rules.FLOAT)
def expm(x: TensorLike) -> Tensor:
    """Return the matrix exponential, by a Pade approximant with scaling and squaring.

    Reference: Higham, "The Scaling and Squaring Method for the Matrix Exponential Revisited", 2005.

    Args:
        x: Square matrices, (..., n, n).
    """
    _check_square("expm", x)
    wide = widened(x)
    if 0 in x.shape:
        return narrowed(wide, x)
    size = max(sum(abs(wide), axis=-2), axis=-1)
    halvings = clip(ceil(log2(clip(divide(size, PADE_RADIUS), 1.0))), 0.0, float(MAX_SQUARINGS))
    halvings = expand_dims(expand_dims(halvings, -1), -1)
    out = _pade(divide(wide, pow(2.0, halvings)))
    for step in range(MAX_SQUARINGS):
        out = where(greater(halvings, float(step)), matmul(out, out), out)
    return narrowed(out, x)


matrix_exp = expm


@composite(rule=rules.FLOAT)
def matrix_rank(x: TensorLike, rtol: MaskLike | None = None) -> Tensor:
    """Return the number of nonzero singular values, as int64.

    Args:
        x: Matrices, (..., m, n).
        rtol: Singular values up to rtol times the largest count as zero; may be one number per
            matrix. Default: max(m, n) * eps.
    """
    tolerance = default_rtol(x) if rtol is None else rtol
    values = svdvals(widened(x))
    if 0 in x.shape[-2:]:
        return count_nonzero(values, axis=-1)
    largest = max(values, axis=-1, keepdims=True)
    return count_nonzero(greater(values, multiply(largest, expand_dims(tolerance, -1))), axis=-1)


def _check_matrix(op_name: str, x: Tensor) -> None:
    if x.ndim != 2:
        raise ShapeError(f"{op_name}: x has shape {x.shape}; expected one matrix")


@composite(rule=rules.FLOAT)
def orth(x: TensorLike, rtol: MaskLike | None = None) -> Tensor:
    """Return an orthonormal basis of the range of a matrix, as columns.

    The number of columns is the rank, which is read from the device.

    Args:
        x: Matrix, (m, n).
        rtol: Singular values up to rtol times the largest count as zero. Default: max(m, n) * eps.
    """
    _check_matrix("orth", x)
    return svd(x, full_matrices=False).U[:, : int(matrix_rank(x, rtol))]


@composite(rule=rules.FLOAT)
def null_space(x: TensorLike, rtol: MaskLike | None = None) -> Tensor:
    """Return an orthonormal basis of the null space of a matrix, as columns.

    The number of columns is n - rank; the rank is read from the device.

    Args:
        x: Matrix, (m, n).
        rtol: Singular values up to rtol times the largest count as zero. Default: max(m, n) * eps.
    """
    _check_matrix("null_space", x)
    return conj(matrix_transpose(svd(x).Vh[int(matrix_rank(x, rtol)) :]))
