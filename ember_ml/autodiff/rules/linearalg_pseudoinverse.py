"""The pseudo-inverse."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import rule
from ember_ml.autodiff.rules._matrices import adjoint, scaled
from ember_ml.ops import linearalg
from ember_ml.ops.linearalg.precision import narrowed, widened
from ember_ml.ops.linearalg.solving import _inverse_values


@rule(linearalg.pinv)
def _(g: Any, out: Any, x: Any, rtol: Any = None) -> Any:
    if 0 in x.shape:
        return ops.zeros_like(x), None
    found = _of_whole(g, out, x) if rtol is None else _of_part(widened(g), widened(x), rtol)
    return narrowed(found, x), None


def _of_whole(g: Any, out: Any, x: Any) -> Any:
    """The gradient among matrices of one rank.

    Reference: Golub, Pereyra, "The Differentiation of Pseudo-Inverses and Nonlinear Least Squares
    Problems Whose Variables Separate", 1973.
    """
    turned, back = adjoint(g), adjoint(out)
    left = ops.matmul(out, turned)
    beside = ops.matmul(ops.matmul(turned, out), back)
    below = ops.matmul(back, left)
    outside = beside - ops.matmul(x, ops.matmul(out, beside))
    inside = below - ops.matmul(ops.matmul(below, out), x)
    return outside + inside - adjoint(ops.matmul(left, out))


def _of_part(g: Any, x: Any, rtol: Any) -> Any:
    """The gradient of the pseudo-inverse without the singular values below a limit."""
    u, values, vh = linearalg.svd(x, full_matrices=False)
    inverse, kept = _inverse_values(values, rtol)
    v = adjoint(vh)
    rows, columns = (ops.expand_dims(inverse, axis) for axis in (-1, -2))
    products = rows * columns  # 0 unless both are kept
    cut = ops.not_equal(ops.expand_dims(kept, -1), ops.expand_dims(kept, -2))
    apart = ops.expand_dims(values, -2) - ops.expand_dims(values, -1)
    together = ops.expand_dims(values, -2) + ops.expand_dims(values, -1)
    slopes = ops.where(cut, (columns - rows) / ops.where(cut, apart, 1.0), -products)
    means = ops.where(cut, (columns + rows) / ops.where(cut, together, 1.0), products)
    inner = ops.matmul(vh, ops.matmul(g, u))
    inner = (inner + adjoint(inner)) * slopes * 0.5 - (inner - adjoint(inner)) * means * 0.5
    squares = ops.square(inverse)
    turned = adjoint(g)
    left = ops.matmul(scaled(u, squares), ops.matmul(adjoint(u), turned))
    right = ops.matmul(ops.matmul(turned, v), ops.expand_dims(squares, -1) * vh)
    found = ops.matmul(u, ops.matmul(inner, vh))
    found = found + left - ops.matmul(ops.matmul(left, v), vh)
    return found + right - ops.matmul(u, ops.matmul(adjoint(u), right))
