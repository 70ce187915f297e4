"""VJP rules of matrix decompositions.

Eigenvectors and singular vectors are unique up to a phase. The gradients are defined for functions
that do not depend on the phase.

Reference: Seeger et al., "Auto-Differentiating Linear Algebra", 2017.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.autodiff.rules.helpers import adjoint, conj
from ember_ml.autodiff.rules.linearalg.helpers import (
    columns,
    differences,
    rows,
    scale_columns,
    solve_right,
    with_diagonal,
)
from ember_ml.ops import linearalg

Tensors = tuple[Tensor, ...]


@vjp_rule(linearalg.cholesky)
def _(g: Tensor, out: Tensor, x: Tensor, upper: bool = False) -> Tensor:
    low, g = (adjoint(out), adjoint(g)) if upper else (out, g)
    inner = ops.tril(ops.matmul(adjoint(low), g))
    inner = (inner + adjoint(ops.tril(inner, -1))) * 0.5
    low_h = adjoint(low)
    left = linearalg.solve_triangular(low_h, inner, upper=True)
    return adjoint(linearalg.solve_triangular(low_h, adjoint(left), upper=True))


@vjp_rule(linearalg.eigh)
def _(g: Tensors, out: Tensors, x: Tensor) -> Tensor:
    g_values, g_vectors = g
    values, vectors = out
    inner = ops.matmul(adjoint(vectors), g_vectors) / differences(values)
    inner = with_diagonal(inner, g_values)
    return ops.matmul(vectors, ops.matmul(inner, adjoint(vectors)))


@vjp_rule(linearalg.eigvalsh)
def _(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    vectors = linearalg.eigh(x).eigenvectors
    return ops.matmul(scale_columns(vectors, g), adjoint(vectors))


@vjp_rule(linearalg.eig)
def _(g: Tensors, out: Tensors, x: Tensor) -> Tensor:
    g_values, g_vectors = g
    values, vectors = out
    vectors_h = adjoint(vectors)
    inner = ops.matmul(vectors_h, g_vectors)
    lengthwise = ops.real(ops.diagonal(inner))  # the length of an eigenvector is fixed
    inner = inner - scale_columns(ops.matmul(vectors_h, vectors), lengthwise)
    inner = with_diagonal(inner / conj(differences(values)), g_values)
    return linearalg.solve(vectors_h, ops.matmul(inner, vectors_h))


@vjp_rule(linearalg.eigvals)
def _(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    vectors_h = adjoint(linearalg.eig(x).eigenvectors)
    return linearalg.solve(vectors_h, ops.expand_dims(g, -1) * vectors_h)


@vjp_rule(linearalg.svdvals)
def _(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    u, _, vh = linearalg.svd(x, full_matrices=False)
    return ops.matmul(scale_columns(u, g), vh)


def _skew(x: Tensor) -> Tensor:
    return x - adjoint(x)


@vjp_rule(linearalg.svd)
def _(g: Tensors, out: Tensors, x: Tensor, full_matrices: bool = True) -> Tensor:
    size = out[1].shape[-1]
    u, values, v = out[0], out[1], adjoint(out[2])
    g_u, g_values, g_v = g[0], g[1], adjoint(g[2])
    rest_u, rest_v = columns(u, size, None), columns(v, size, None)
    g_rest_u, g_rest_v = columns(g_u, size, None), columns(g_v, size, None)
    u, v, g_u, g_v = (columns(part, None, size) for part in (u, v, g_u, g_v))
    uh, vh = adjoint(u), adjoint(v)
    inner_u, inner_v = ops.matmul(uh, g_u), ops.matmul(vh, g_v)
    gaps = differences(ops.square(values))
    inner = scale_columns(_skew(inner_u) / gaps, values)
    inner = inner + ops.expand_dims(values, -1) * (_skew(inner_v) / gaps)
    diagonal = g_values
    if x.dtype.is_complex:
        diagonal = ops.make_complex(g_values, ops.imag(ops.diagonal(inner_u)) / values)
    inner = with_diagonal(inner, diagonal)
    # the parts outside the span of the singular vectors; full_matrices completes them to a basis
    out_u = g_u - ops.matmul(u, inner_u) - ops.matmul(rest_u, ops.matmul(adjoint(g_rest_u), u))
    out_v = g_v - ops.matmul(v, inner_v) - ops.matmul(rest_v, ops.matmul(adjoint(g_rest_v), v))
    result = ops.matmul(u, ops.matmul(inner, vh))
    if x.shape[-2] > size:
        result = result + ops.matmul(scale_columns(out_u, 1.0 / values), vh)
    if x.shape[-1] > size:
        result = result + ops.matmul(scale_columns(u, 1.0 / values), adjoint(out_v))
    return result


def _tall_qr(g_q: Tensor, g_r: Tensor, q: Tensor, r: Tensor) -> Tensor:
    """Return the gradient of x = Q R with at least as many rows as columns."""
    inner = ops.triu(ops.matmul(g_r, adjoint(r)) - ops.matmul(adjoint(q), g_q))
    symmetric = inner + adjoint(inner)
    symmetric = symmetric - ops.diag_embed(ops.diagonal(symmetric) * 0.5)
    return solve_right(g_q + ops.matmul(q, symmetric), r, upper=True)


@vjp_rule(linearalg.qr)
def _(g: Tensors, out: Tensors, x: Tensor, mode: str = "reduced") -> Tensor:
    q, r = out
    g_q, g_r = g
    size = min(x.shape[-2:])
    if q.shape[-1] > size:  # the columns that complete the basis turn with the others
        rest, g_rest = columns(q, size, None), columns(g_q, size, None)
        q, g_q = columns(q, None, size), columns(g_q, None, size)
        r, g_r = rows(r, None, size), rows(g_r, None, size)
        g_q = g_q - ops.matmul(rest, ops.matmul(adjoint(g_rest), q))
    if x.shape[-1] == size:
        return _tall_qr(g_q, g_r, q, r)
    right = columns(g_r, size, None)
    g_q = g_q + ops.matmul(columns(x, size, None), adjoint(right))
    square = _tall_qr(g_q, columns(g_r, None, size), q, columns(r, None, size))
    return ops.concat([square, ops.matmul(q, right)], axis=-1)


def _square_lu(g_low: Tensor, g_up: Tensor, low: Tensor, up: Tensor) -> Tensor:
    """Return the gradient of the square product L U."""
    inner = ops.tril(ops.matmul(adjoint(low), g_low), -1)
    inner = inner + ops.triu(ops.matmul(g_up, adjoint(up)))
    left = linearalg.solve_triangular(adjoint(low), inner, upper=True)
    return solve_right(left, up, upper=True)


@vjp_rule(linearalg.lu)
def _(g: Tensors, out: Tensors, x: Tensor) -> Tensor:
    p, low, up = out
    _, g_low, g_up = g
    size = min(x.shape[-2:])
    if x.shape[-1] > size:
        rest = linearalg.solve_triangular(adjoint(low), columns(g_up, size, None), upper=True)
        g_low = g_low - ops.matmul(rest, adjoint(columns(up, size, None)))
        square = _square_lu(g_low, columns(g_up, None, size), low, columns(up, None, size))
        return ops.matmul(p, ops.concat([square, rest], axis=-1))
    if x.shape[-2] > size:
        rest = solve_right(rows(g_low, size, None), up, upper=True)
        g_up = g_up - ops.matmul(adjoint(rows(low, size, None)), rest)
        square = _square_lu(rows(g_low, None, size), g_up, rows(low, None, size), up)
        return ops.matmul(p, ops.concat([square, rest], axis=-2))
    return ops.matmul(p, _square_lu(g_low, g_up, low, up))
