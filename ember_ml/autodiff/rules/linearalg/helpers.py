"""Helpers shared by the VJP rules of linear algebra."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules.helpers import adjoint
from ember_ml.ops.indexing import getitem


def columns(x: Tensor, start: int | None, stop: int | None) -> Tensor:
    """Return a range of columns."""
    return getitem(x, (..., slice(start, stop)))


def rows(x: Tensor, start: int | None, stop: int | None) -> Tensor:
    """Return a range of rows."""
    return getitem(x, (..., slice(start, stop), slice(None)))


def with_diagonal(x: Tensor, diagonal: Tensor) -> Tensor:
    """Return square matrices with another diagonal."""
    return x + ops.diag_embed(diagonal - ops.diagonal(x))


def scale_columns(x: Tensor, values: Tensor) -> Tensor:
    """Return matrices with each column multiplied by its value."""
    return x * ops.expand_dims(values, -2)


def differences(values: Tensor) -> Tensor:
    """Return values[j] - values[i] for all pairs (i, j), and 1 on the diagonal."""
    pairs = ops.expand_dims(values, -2) - ops.expand_dims(values, -1)
    return pairs + ops.diag_embed(ops.ones_like(values))


def solve_right(x: Tensor, triangle: Tensor, upper: bool) -> Tensor:
    """Return x @ triangle^-H."""
    return adjoint(ops.linearalg.solve_triangular(triangle, adjoint(x), upper))
