"""VJP rules of determinants, with derivatives of every order at singular matrices too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.autodiff.rules.helpers import adjoint, conj
from ember_ml.autodiff.transforms.custom import custom_gradient
from ember_ml.ops import linearalg

_SMALL = 0.01  # a singular value below this part of the largest one is shifted


@vjp_rule(linearalg.det)
def _(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    return ops.expand_dims(g, (-2, -1)) * _cofactors(x)


@vjp_rule(linearalg.slogdet)
def _(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
    g_sign, g_log = g
    if x.dtype.is_complex:
        g_log = ops.make_complex(g_log, ops.imag(conj(out[0]) * g_sign))
    return ops.expand_dims(g_log, (-2, -1)) * adjoint(linearalg.inv(x))


@custom_gradient
def _cofactors(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return conj(det(x)) x^-H, by an LU decomposition with zero pivots replaced by eps."""
    p, low, up = linearalg.lu(x)
    pivots = ops.diagonal(up)
    nonzero = ops.where(pivots == 0.0, ops.finfo(x.dtype).eps, pivots)
    up = up + ops.diag_embed(nonzero - pivots)
    inverse = linearalg.solve_triangular(
        up, linearalg.solve_triangular(low, ops.matrix_transpose(p)), upper=True
    )
    det = linearalg.det(p) * ops.prod(nonzero, axis=-1)
    return ops.expand_dims(conj(det), (-2, -1)) * adjoint(inverse), lambda g: _slope(g, x)


def _slope(g: Tensor, x: Tensor) -> Tensor:
    """Return the VJP of the cofactors, interpolated.

    The cofactors of x + t p are polynomials in t of a degree below n. With a matrix p of the
    smallest singular vectors, x + t p is singular at no node.
    """
    if x.shape[-1] == 0:
        return g
    nodes, weights = (_leading(values, x) for values in _interpolation(x.shape[-1]))
    points = x + nodes * _shift(ops.stop_gradient(x))
    sign, log_size = linearalg.slogdet(points)
    det = conj(sign * ops.exp(log_size))
    inverse = adjoint(linearalg.inv(points))
    along = ops.sum(conj(inverse) * g, axis=(-2, -1))
    slopes = ops.expand_dims(conj(along), (-2, -1)) * inverse
    slopes = slopes - ops.matmul(inverse, ops.matmul(adjoint(g), inverse))
    return ops.sum(weights * ops.expand_dims(det, (-2, -1)) * slopes, axis=0)


def _leading(values: Sequence[float], x: Tensor) -> Tensor:
    """Return numbers along a new first axis of x."""
    column = convert_to_tensor(values, dtype=x.dtype, backend=x.backend)
    return ops.reshape(column, (-1, *[1] * x.ndim))


def _shift(x: Tensor) -> Tensor:
    """Return the distance from x to the node 1: zero if no singular value is small."""
    u, s, vh = linearalg.svd(ops.where(ops.isfinite(x), x, 0.0))
    largest = ops.max(s, axis=-1, keepdims=True)
    nearest = min(abs(node) for node in _interpolation(x.shape[-1])[0])
    length = ops.where(largest > 0, largest * (5 * _SMALL / nearest), 1.0)
    shift = ops.where(s <= _SMALL * largest, length, 0.0)
    return ops.matmul(u * ops.expand_dims(shift, -2), vh)


def _interpolation(degree: int) -> tuple[Sequence[float], Sequence[float]]:
    """Return Chebyshev nodes, 0 not among them, and the weights of a polynomial's value at 0."""
    count = degree + degree % 2
    angles = [(2 * at + 1) * math.pi / (2 * count) for at in range(count)]
    nodes = [math.cos(angle) for angle in angles]
    terms = [(-1) ** at * math.tan(angle) for at, angle in enumerate(angles)]
    total = math.fsum(terms)
    return nodes, [term / total for term in terms]
