"""VJP rule of linear recurrences: the gradient is the same recurrence in reverse time."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.ops.recurrence import _linear_recurrence_adjoint

Tensors = tuple[Tensor, Tensor]


@vjp_rule(ops.linear_recurrence)
def _(
    g: Tensors,
    out: Tensors,
    a: Tensor,
    b: Tensor,
    h0: Tensor | None = None,
    axis: int = 1,
    reverse: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    states, axis = out[0], axis % out[0].ndim
    if states.shape[axis] == 0:
        return g[0], g[0], g[1]
    g_all, g_last = g
    return _linear_recurrence_adjoint(a, states, g_all, g_last, h0, axis, reverse)
