"""Systems of linear equations; all take batches of matrices.

A singular matrix raises LinAlgError. MLX is lazy and returns NaN instead. Half precision is
computed in float32.
"""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import MaskLike, composite, op, unary
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._composite import default_rtol, narrowed, widened
from ember_ml.ops.comparison import greater
from ember_ml.ops.complex_numbers import conj, real
from ember_ml.ops.contraction import matmul
from ember_ml.ops.elementwise import multiply, reciprocal, subtract
from ember_ml.ops.indexing import where
from ember_ml.ops.linearalg.decompositions import svd
from ember_ml.ops.linearalg.results import LstsqResult
from ember_ml.ops.manipulation import expand_dims, matrix_transpose, squeeze
from ember_ml.ops.reduction import count_nonzero, max, sum

__all__ = ["cholesky_solve", "inv", "lstsq", "pinv", "solve", "solve_triangular"]


@unary(rule=rules.FLOAT)
def inv(x: TensorLike) -> Tensor:
    """Return the inverse of a square matrix.

    Args:
        x: Square matrices, (..., n, n).
    """


@op(rule=rules.FLOAT)
def solve(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the solution z of x z = y.

    Args:
        x: Square matrices, (..., n, n).
        y: Right-hand sides, (..., n, k), or one vector (n,).
    """


@op(rule=rules.FLOAT)
def solve_triangular(
    x: TensorLike, y: TensorLike, upper: bool = False, unit_diagonal: bool = False
) -> Tensor:
    """Return the solution z of x z = y for a triangular matrix x.

    A zero on the diagonal raises LinAlgError on NumPy; torch and MLX return infinities or NaN.

    Args:
        x: Triangular matrices, (..., n, n); the other triangle is not read.
        y: Right-hand sides, (..., n, k).
        upper: Whether x is upper triangular.
        unit_diagonal: Whether to assume ones on the diagonal.
    """


@composite(rule=rules.FLOAT)
def cholesky_solve(x: TensorLike, y: TensorLike, upper: bool = False) -> Tensor:
    """Return the solution z of A z = y, given the Cholesky factor of A.

    Args:
        x: Cholesky factors, (..., n, n).
        y: Right-hand sides, (..., n, k).
        upper: Whether x is the upper factor.
    """
    factor = widened(x)
    adjoint = conj(matrix_transpose(factor))
    lower, raised = (adjoint, factor) if upper else (factor, adjoint)
    return narrowed(solve_triangular(raised, solve_triangular(lower, widened(y)), upper=True), x)


def _inverse_values(values: Tensor, rtol: Tensor) -> tuple[Tensor, Tensor]:
    """Return the reciprocals of the nonzero singular values, else 0, and the mask of nonzeros."""
    if values.shape[-1] == 0:  # an empty matrix
        return values, greater(values, 0.0)
    largest = max(values, axis=-1, keepdims=True)
    is_nonzero = greater(values, multiply(largest, expand_dims(rtol, -1)))
    return where(is_nonzero, reciprocal(where(is_nonzero, values, 1.0)), 0.0), is_nonzero


@composite(rule=rules.FLOAT)
def pinv(x: TensorLike, rtol: MaskLike | None = None) -> Tensor:
    """Return the Moore-Penrose pseudoinverse.

    Args:
        x: Matrices, (..., m, n).
        rtol: Singular values up to rtol times the largest count as zero; may be one number per
            matrix. Default: max(m, n) * eps.
    """
    if 0 in x.shape[-2:]:
        return narrowed(matrix_transpose(widened(x)), x)
    u, values, vh = svd(widened(x), full_matrices=False)
    inverse, _ = _inverse_values(values, default_rtol(x) if rtol is None else rtol)
    v, uh = conj(matrix_transpose(vh)), conj(matrix_transpose(u))
    return narrowed(matmul(multiply(v, expand_dims(inverse, -2)), uh), x)


@composite(rule=rules.FLOAT)
def lstsq(x: TensorLike, y: TensorLike, rtol: MaskLike | None = None) -> LstsqResult:
    """Return the z of least norm that minimizes |x z - y|, residuals, rank and singular values.

    Args:
        x: Matrices, (..., m, n).
        y: Right-hand sides, (..., m, k), or one vector (m,).
        rtol: Singular values up to rtol times the largest count as zero. Default: max(m, n) * eps.
    """
    a, b = widened(x), widened(y)
    b = expand_dims(b, -1) if y.ndim == 1 else b
    u, values, vh = svd(a, full_matrices=False)
    inverse, is_nonzero = _inverse_values(values, default_rtol(x) if rtol is None else rtol)
    parts = multiply(matmul(conj(matrix_transpose(u)), b), expand_dims(inverse, -1))
    solution = matmul(conj(matrix_transpose(vh)), parts)
    rest = subtract(b, matmul(a, solution))
    residuals = sum(real(multiply(conj(rest), rest)), axis=-2)
    if y.ndim == 1:
        solution, residuals = squeeze(solution, -1), squeeze(residuals, -1)
    rank = count_nonzero(is_nonzero, axis=-1)
    return LstsqResult(narrowed(solution, x), narrowed(residuals, x), rank, narrowed(values, x))
