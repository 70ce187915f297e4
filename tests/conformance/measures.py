"""Unique measures to differentiate for ops whose results are not unique."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops


def _adjoint(x: Any) -> Any:
    return ops.conj(ops.matrix_transpose(x))


def _projectors(vectors: Any, others: Any = None) -> Any:
    """Return u v^H for each pair of columns, which are unique up to a phase; default: v = u."""
    others = vectors if others is None else others
    columns, rows = ops.matrix_transpose(vectors), ops.conj(ops.matrix_transpose(others))
    return ops.expand_dims(columns, -1) * ops.expand_dims(rows, -2)


def _span(basis: Any) -> Any:
    return ops.matmul(basis, _adjoint(basis))


def _power_sums(values: Any, parts: Any = None) -> list[Any]:
    """Return the sums of powers of eigenvalues, whose order is arbitrary."""
    parts = ops.ones_like(values) if parts is None else parts
    powers = [values, values * values, values * values * values]
    extra = parts.ndim - values.ndim
    return [
        ops.sum(ops.reshape(power, power.shape + (1,) * extra) * parts, axis=values.ndim - 1)
        for power in powers
    ]


def _svd(out: Any) -> Any:
    u, values, v = out[0], out[1], _adjoint(out[2])
    size = values.shape[-1]
    first_u, first_v = u[..., :size], v[..., :size]
    pairs = [_projectors(first_u), _projectors(first_u, first_v), _projectors(first_v)]
    return [values, *pairs, _span(u[..., size:]), _span(v[..., size:])]


def _qr(out: Any) -> Any:
    q, r = out
    size = min(q.shape[-2], r.shape[-1])
    signs = ops.sign(ops.real(ops.diagonal(r)))
    first = q[..., :size] * ops.expand_dims(signs, -2)
    return first, r[..., :size, :] * ops.expand_dims(signs, -1), _span(q[..., size:])


MEASURES: dict[str, Callable[[Any], Any]] = {
    "linearalg.decompositions.eig": lambda out: _power_sums(out[0], _projectors(out[1])),
    "linearalg.decompositions.eigh": lambda out: (out[0], _projectors(out[1])),
    "linearalg.decompositions.eigvals": _power_sums,
    "linearalg.decompositions.qr": _qr,
    "linearalg.decompositions.svd": _svd,
    "linearalg.matrix_functions.null_space": _span,
    "linearalg.matrix_functions.orth": _span,
    # unless asked for, the chosen have no order
    "sorting.topk": lambda out: ops.sort(ops.reshape(out[0], (-1,))),
}


def _hermitian(x: Any) -> Any:
    return (x + _adjoint(x)) * 0.5


OPERANDS: dict[str, Callable[[Any], Any]] = {
    # a gradient among Hermitian matrices; what is read of others is the lower half alone
    "linearalg.decompositions.cholesky": _hermitian,
    "linearalg.decompositions.eigh": _hermitian,
    "linearalg.decompositions.eigvalsh": _hermitian,
}
"""Construction of an op's first operand."""
