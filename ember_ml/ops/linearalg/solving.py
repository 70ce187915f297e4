"""Systems of linear equations; all take stacks of matrices.

A singular matrix raises LinAlgError; on MLX, which computes when the values are read, the result is
NaN instead. Half precision is computed in float32.
"""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import MaskLike, composite, op, unary
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.comparison import greater
from ember_ml.ops.complex_numbers import conj, real
from ember_ml.ops.contraction import matmul
from ember_ml.ops.elementwise import multiply, reciprocal, subtract
from ember_ml.ops.indexing import where
from ember_ml.ops.linearalg.decompositions import svd
from ember_ml.ops.linearalg.precision import default_rtol, narrowed, widened
from ember_ml.ops.linearalg.results import LstsqResult
from ember_ml.ops.manipulation import expand_dims, matrix_transpose, squeeze
from ember_ml.ops.reduction import count_nonzero, max, sum

__all__ = ["cholesky_solve", "inv", "lstsq", "pinv", "solve", "solve_triangular"]


@unary(rule=rules.FLOAT)
def inv(x: TensorLike) -> Tensor:
    """The inverse of a square matrix."""


@op(rule=rules.FLOAT)
def solve(x: TensorLike, y: TensorLike) -> Tensor:
    """The z with x z = y: (..., n, n), (..., n, k) -> (..., n, k); y may be one vector."""


@op(rule=rules.FLOAT)
def solve_triangular(
    x: TensorLike, y: TensorLike, upper: bool = False, unit_diagonal: bool = False
) -> Tensor:
    """The z with x z = y for a triangle x; the other half of x is not read.

    A zero on the diagonal raises LinAlgError on NumPy; torch and MLX give infinities or NaN.

    Args:
        upper: whether x is an upper triangle.
        unit_diagonal: take the diagonal for ones, whatever it holds.
    """


@composite(rule=rules.FLOAT)
def cholesky_solve(x: TensorLike, y: TensorLike, upper: bool = False) -> Tensor:
    """The z with A z = y, given A's Cholesky factor x."""
    factor = widened(x)
    adjoint = conj(matrix_transpose(factor))
    lower, raised = (adjoint, factor) if upper else (factor, adjoint)
    return narrowed(solve_triangular(raised, solve_triangular(lower, widened(y)), upper=True), x)


def _inverse_values(values: Tensor, rtol: Tensor) -> tuple[Tensor, Tensor]:
    """The reciprocals of the singular values that are not about zero, else 0; and which."""
    largest = max(values, axis=-1, keepdims=True)
    kept = greater(values, multiply(largest, expand_dims(rtol, -1)))
    return where(kept, reciprocal(where(kept, values, 1.0)), 0.0), kept


@composite(rule=rules.FLOAT)
def pinv(x: TensorLike, rtol: MaskLike | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse.

    Args:
        rtol: singular values up to rtol times the largest count as zero: one number, or one for
            each matrix; else max(m, n) eps.
    """
    if 0 in x.shape[-2:]:
        return narrowed(matrix_transpose(widened(x)), x)
    u, values, vh = svd(widened(x), full_matrices=False)
    inverse, _ = _inverse_values(values, default_rtol(x) if rtol is None else rtol)
    v, uh = conj(matrix_transpose(vh)), conj(matrix_transpose(u))
    return narrowed(matmul(multiply(v, expand_dims(inverse, -2)), uh), x)


@composite(rule=rules.FLOAT)
def lstsq(x: TensorLike, y: TensorLike, rtol: MaskLike | None = None) -> LstsqResult:
    """The z of least norm among those that minimise |x z - y|; y may be one vector.

    Args:
        rtol: as in `pinv`.
    """
    a, b = widened(x), widened(y)
    b = expand_dims(b, -1) if y.ndim == 1 else b
    u, values, vh = svd(a, full_matrices=False)
    inverse, kept = _inverse_values(values, default_rtol(x) if rtol is None else rtol)
    parts = multiply(matmul(conj(matrix_transpose(u)), b), expand_dims(inverse, -1))
    solution = matmul(conj(matrix_transpose(vh)), parts)
    rest = subtract(b, matmul(a, solution))
    residuals = sum(real(multiply(conj(rest), rest)), axis=-2)
    if y.ndim == 1:
        solution, residuals = squeeze(solution, -1), squeeze(residuals, -1)
    rank = count_nonzero(kept, axis=-1)
    return LstsqResult(narrowed(solution, x), narrowed(residuals, x), rank, narrowed(values, x))
