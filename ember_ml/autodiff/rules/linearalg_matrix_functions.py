"""Determinants."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import rule
from ember_ml.autodiff.rules._matrices import adjoint
from ember_ml.autodiff.rules._shared import conj
from ember_ml.ops import linearalg


def _over_matrices(x: Any) -> Any:
    return ops.expand_dims(x, (-2, -1))


@rule(linearalg.det)
def _(g: Any, out: Any, x: Any) -> Any:
    """The cofactors: det x^-H, of a singular matrix with a pivot that is not quite zero."""
    p, low, up = linearalg.lu(x)
    pivots = ops.diagonal(up)
    lifted = ops.where(pivots == 0.0, ops.finfo(x.dtype).eps, pivots)
    up = up + ops.diag_embed(lifted - pivots)
    inverse = linearalg.solve_triangular(
        up, linearalg.solve_triangular(low, ops.matrix_transpose(p)), upper=True
    )
    size = linearalg.det(ops.stop_gradient(p)) * ops.prod(lifted, axis=-1)
    return _over_matrices(g * conj(size)) * adjoint(inverse)


@rule(linearalg.slogdet)
def _(g: Any, out: Any, x: Any) -> Any:
    sign, size = g
    if x.dtype.is_complex:
        turn = ops.imag(conj(out[0]) * sign)
        size = ops.make_complex(size, turn)
    return _over_matrices(size) * adjoint(linearalg.inv(x))
