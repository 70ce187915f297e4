"""Matrices as products of simpler ones.

What is not unique (the phase of a vector) has a gradient only in what does not depend on it.

Reference: Seeger et al., "Auto-Differentiating Linear Algebra", 2017.
"""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import rule
from ember_ml.autodiff.rules._matrices import adjoint, gaps, scaled, with_diagonal
from ember_ml.autodiff.rules._shared import conj
from ember_ml.ops import linearalg
from ember_ml.ops.indexing import getitem


@rule(linearalg.cholesky)
def _(g: Any, out: Any, x: Any, upper: bool = False) -> Any:
    low, g = (adjoint(out), adjoint(g)) if upper else (out, g)
    inner = ops.tril(ops.matmul(adjoint(low), g))
    inner = (inner + adjoint(ops.tril(inner, -1))) * 0.5
    raised = adjoint(low)
    left = linearalg.solve_triangular(raised, inner, upper=True)
    return adjoint(linearalg.solve_triangular(raised, adjoint(left), upper=True))


@rule(linearalg.eigh)
def _(g: Any, out: Any, x: Any) -> Any:
    of_values, of_vectors = g
    values, vectors = out
    inner = ops.matmul(adjoint(vectors), of_vectors) / gaps(values)
    inner = with_diagonal(inner, of_values)
    return ops.matmul(vectors, ops.matmul(inner, adjoint(vectors)))


@rule(linearalg.eigvalsh)
def _(g: Any, out: Any, x: Any) -> Any:
    vectors = linearalg.eigh(x).eigenvectors
    return ops.matmul(scaled(vectors, g), adjoint(vectors))


@rule(linearalg.eig)
def _(g: Any, out: Any, x: Any) -> Any:
    of_values, of_vectors = g
    values, vectors = out
    raised = adjoint(vectors)
    inner = ops.matmul(raised, of_vectors)
    along = ops.real(ops.diagonal(inner))  # a vector's length does not change
    inner = (inner - scaled(ops.matmul(raised, vectors), along)) / conj(gaps(values))
    inner = with_diagonal(inner, of_values)
    return linearalg.solve(raised, ops.matmul(inner, raised))


@rule(linearalg.eigvals)
def _(g: Any, out: Any, x: Any) -> Any:
    raised = adjoint(linearalg.eig(x).eigenvectors)
    return linearalg.solve(raised, ops.expand_dims(g, -1) * raised)


@rule(linearalg.svdvals)
def _(g: Any, out: Any, x: Any) -> Any:
    u, _, vh = linearalg.svd(x, full_matrices=False)
    return ops.matmul(scaled(u, g), vh)


def _columns(x: Any, start: int | None, stop: int | None) -> Any:
    return getitem(x, (..., slice(start, stop)))


def _skew(x: Any) -> Any:
    return x - adjoint(x)


@rule(linearalg.svd)
def _(g: Any, out: Any, x: Any, full_matrices: bool = True) -> Any:
    size = out[1].shape[-1]
    u, values, v = out[0], out[1], adjoint(out[2])
    of_u, of_values, of_v = g[0], g[1], adjoint(g[2])
    lost_u, lost_v = _columns(u, size, None), _columns(v, size, None)
    of_lost_u, of_lost_v = _columns(of_u, size, None), _columns(of_v, size, None)
    u, v, of_u, of_v = (_columns(part, None, size) for part in (u, v, of_u, of_v))
    uh, vh = adjoint(u), adjoint(v)
    turned_u, turned_v = ops.matmul(uh, of_u), ops.matmul(vh, of_v)
    apart = gaps(ops.square(values))
    rows = ops.expand_dims(values, -1)
    inner = scaled(_skew(turned_u) / apart, values) + rows * (_skew(turned_v) / apart)
    main = of_values
    if x.dtype.is_complex:
        main = ops.make_complex(of_values, ops.imag(ops.diagonal(turned_u)) / values)
    inner = with_diagonal(inner, main)
    # what leaves the space of the vectors that are there, and of those that fill it up
    out_u = of_u - ops.matmul(u, turned_u) - ops.matmul(lost_u, ops.matmul(adjoint(of_lost_u), u))
    out_v = of_v - ops.matmul(v, turned_v) - ops.matmul(lost_v, ops.matmul(adjoint(of_lost_v), v))
    result = ops.matmul(u, ops.matmul(inner, vh))
    if x.shape[-2] > size:
        result = result + ops.matmul(scaled(out_u, 1.0 / values), vh)
    if x.shape[-1] > size:
        result = result + ops.matmul(scaled(u, 1.0 / values), adjoint(out_v))
    return result
