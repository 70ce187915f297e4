"""What rules of linear algebra share."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules._shared import conj


def adjoint(x: Any) -> Any:
    """The conjugate transpose of the last two axes."""
    return ops.matrix_transpose(conj(x))


def with_diagonal(x: Any, diagonal: Any) -> Any:
    """Square matrices, their diagonals replaced."""
    return x + ops.diag_embed(diagonal - ops.diagonal(x))


def scaled(x: Any, values: Any) -> Any:
    """The columns of matrices times values."""
    return x * ops.expand_dims(values, -2)


def gaps(values: Any) -> Any:
    """values[j] - values[i] for each pair i, j; 1 where they are the same one."""
    apart = ops.expand_dims(values, -2) - ops.expand_dims(values, -1)
    return apart + ops.diag_embed(ops.ones_like(values))


def times_inverse(x: Any, triangle: Any, upper: bool) -> Any:
    """x @ triangle^-H."""
    return adjoint(ops.linearalg.solve_triangular(triangle, adjoint(x), upper))
