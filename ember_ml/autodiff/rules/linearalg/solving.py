"""VJP rules of linear systems, inverses and pseudoinverses."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule, vjps
from ember_ml.autodiff.rules.helpers import adjoint
from ember_ml.autodiff.rules.linearalg.helpers import scale_columns
from ember_ml.ops import linearalg
from ember_ml.ops._composite import narrowed, widened
from ember_ml.ops.linearalg.solving import _inverse_values

vjps(
    linearalg.inv,
    x=lambda g, out, x: -ops.matmul(adjoint(out), ops.matmul(g, adjoint(out))),
)


def _as_matrix(x: Tensor, y: Tensor) -> Tensor:
    """Return a result or its gradient as a matrix, where y is a vector."""
    return ops.expand_dims(x, -1) if y.ndim == 1 else x


def _as_vector(x: Tensor, y: Tensor) -> Tensor:
    return ops.squeeze(x, -1) if y.ndim == 1 else x


@vjp_rule(linearalg.solve)
def _(g: Tensor, out: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    dy = linearalg.solve(adjoint(x), _as_matrix(g, y))
    return -ops.matmul(dy, adjoint(_as_matrix(out, y))), _as_vector(dy, y)


@vjp_rule(linearalg.solve_triangular)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    y: Tensor,
    upper: bool = False,
    unit_diagonal: bool = False,
) -> tuple[Tensor, Tensor]:
    dy = linearalg.solve_triangular(adjoint(x), _as_matrix(g, y), not upper, unit_diagonal)
    dx = -ops.matmul(dy, adjoint(_as_matrix(out, y)))
    offset = 1 if unit_diagonal else 0
    dx = ops.triu(dx, offset) if upper else ops.tril(dx, -offset)
    return dx, _as_vector(dy, y)


@vjp_rule(linearalg.pinv)
def _(g: Tensor, out: Tensor, x: Tensor, rtol: Tensor | None = None) -> tuple[Tensor, None]:
    if 0 in x.shape:
        return ops.zeros_like(x), None
    if rtol is None:
        return narrowed(_constant_rank_pinv(g, out, x), x), None
    return narrowed(_truncated_pinv(widened(g), widened(x), rtol), x), None


def _constant_rank_pinv(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    """Return the gradient among matrices of the same rank.

    Reference: Golub, Pereyra, "The Differentiation of Pseudo-Inverses and Nonlinear Least Squares
    Problems Whose Variables Separate", 1973.
    """
    gh, out_h = adjoint(g), adjoint(out)
    left = ops.matmul(out, gh)
    rows = ops.matmul(ops.matmul(gh, out), out_h)
    columns = ops.matmul(out_h, left)
    outside = rows - ops.matmul(x, ops.matmul(out, rows))
    inside = columns - ops.matmul(ops.matmul(columns, out), x)
    return outside + inside - adjoint(ops.matmul(left, out))


def _truncated_pinv(g: Tensor, x: Tensor, rtol: Tensor) -> Tensor:
    """Return the gradient of the pseudoinverse without the singular values below a threshold."""
    u, values, vh = linearalg.svd(x, full_matrices=False)
    inverse, is_used = _inverse_values(values, rtol)
    v = adjoint(vh)
    rows, columns = (ops.expand_dims(inverse, axis) for axis in (-1, -2))
    products = rows * columns  # 0 unless both values are used
    mixed = ops.not_equal(ops.expand_dims(is_used, -1), ops.expand_dims(is_used, -2))
    gaps = ops.expand_dims(values, -2) - ops.expand_dims(values, -1)
    sums = ops.expand_dims(values, -2) + ops.expand_dims(values, -1)
    slopes = ops.where(mixed, (columns - rows) / ops.where(mixed, gaps, 1.0), -products)
    means = ops.where(mixed, (columns + rows) / ops.where(mixed, sums, 1.0), products)
    inner = ops.matmul(vh, ops.matmul(g, u))
    inner = (inner + adjoint(inner)) * slopes * 0.5 - (inner - adjoint(inner)) * means * 0.5
    squares = ops.square(inverse)
    gh = adjoint(g)
    left = ops.matmul(scale_columns(u, squares), ops.matmul(adjoint(u), gh))
    right = ops.matmul(ops.matmul(gh, v), ops.expand_dims(squares, -1) * vh)
    result = ops.matmul(u, ops.matmul(inner, vh))
    result = result + left - ops.matmul(ops.matmul(left, v), vh)
    return result + right - ops.matmul(u, ops.matmul(adjoint(u), right))
