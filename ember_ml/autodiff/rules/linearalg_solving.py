"""Systems of linear equations."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand, rule
from ember_ml.autodiff.rules._matrices import adjoint
from ember_ml.ops import linearalg

by_operand(
    linearalg.inv,
    x=lambda g, out, x: -ops.matmul(adjoint(out), ops.matmul(g, adjoint(out))),
)


def _columns(x: Any, y: Any) -> Any:
    """A result or its gradient as matrices, if y is one vector."""
    return ops.expand_dims(x, -1) if y.ndim == 1 else x


def _vector(x: Any, y: Any) -> Any:
    return ops.squeeze(x, -1) if y.ndim == 1 else x


@rule(linearalg.solve)
def _(g: Any, out: Any, x: Any, y: Any) -> Any:
    dy = linearalg.solve(adjoint(x), _columns(g, y))
    return -ops.matmul(dy, adjoint(_columns(out, y))), _vector(dy, y)


@rule(linearalg.solve_triangular)
def _(g: Any, out: Any, x: Any, y: Any, upper: bool = False, unit_diagonal: bool = False) -> Any:
    dy = linearalg.solve_triangular(adjoint(x), _columns(g, y), not upper, unit_diagonal)
    dx = -ops.matmul(dy, adjoint(_columns(out, y)))
    beside = 1 if unit_diagonal else 0
    dx = ops.triu(dx, beside) if upper else ops.tril(dx, -beside)
    return dx, _vector(dy, y)
