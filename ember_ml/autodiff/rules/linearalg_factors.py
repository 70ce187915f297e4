"""Triangular factors: QR and LU."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import rule
from ember_ml.autodiff.rules._matrices import adjoint, times_inverse
from ember_ml.ops import linearalg
from ember_ml.ops.indexing import getitem


def _columns(x: Any, start: int | None, stop: int | None) -> Any:
    return getitem(x, (..., slice(start, stop)))


def _rows(x: Any, start: int | None, stop: int | None) -> Any:
    return getitem(x, (..., slice(start, stop), slice(None)))


def _tall(of_q: Any, of_r: Any, q: Any, r: Any) -> Any:
    """The gradient of x = Q R with as many rows as columns or more."""
    inner = ops.triu(ops.matmul(of_r, adjoint(r)) - ops.matmul(adjoint(q), of_q))
    both = inner + adjoint(inner)
    both = both - ops.diag_embed(ops.diagonal(both) * 0.5)
    return times_inverse(of_q + ops.matmul(q, both), r, upper=True)


@rule(linearalg.qr)
def _(g: Any, out: Any, x: Any, mode: str = "reduced") -> Any:
    q, r = out
    of_q, of_r = g
    size = min(x.shape[-2:])
    if q.shape[-1] > size:  # columns that fill up the space turn as the others do
        lost, of_lost = _columns(q, size, None), _columns(of_q, size, None)
        q, of_q = _columns(q, None, size), _columns(of_q, None, size)
        r, of_r = _rows(r, None, size), _rows(of_r, None, size)
        of_q = of_q - ops.matmul(lost, ops.matmul(adjoint(of_lost), q))
    if x.shape[-1] == size:
        return _tall(of_q, of_r, q, r)
    rest = _columns(of_r, size, None)
    of_q = of_q + ops.matmul(_columns(x, size, None), adjoint(rest))
    square = _tall(of_q, _columns(of_r, None, size), q, _columns(r, None, size))
    return ops.concat([square, ops.matmul(q, rest)], axis=-1)


def _square(of_low: Any, of_up: Any, low: Any, up: Any) -> Any:
    """The gradient of L U."""
    inner = ops.tril(ops.matmul(adjoint(low), of_low), -1) + ops.triu(
        ops.matmul(of_up, adjoint(up))
    )
    left = linearalg.solve_triangular(adjoint(low), inner, upper=True)
    return times_inverse(left, up, upper=True)


@rule(linearalg.lu)
def _(g: Any, out: Any, x: Any) -> Any:
    p, low, up = out
    _, of_low, of_up = g
    size = min(x.shape[-2:])
    if x.shape[-1] > size:
        rest = linearalg.solve_triangular(adjoint(low), _columns(of_up, size, None), upper=True)
        of_low = of_low - ops.matmul(rest, adjoint(_columns(up, size, None)))
        square = _square(of_low, _columns(of_up, None, size), low, _columns(up, None, size))
        return ops.matmul(p, ops.concat([square, rest], axis=-1))
    if x.shape[-2] > size:
        rest = times_inverse(_rows(of_low, size, None), up, upper=True)
        of_up = of_up - ops.matmul(adjoint(_rows(low, size, None)), rest)
        square = _square(_rows(of_low, None, size), of_up, _rows(low, None, size), up)
        return ops.matmul(p, ops.concat([square, rest], axis=-2))
    return ops.matmul(p, _square(of_low, of_up, low, up))
