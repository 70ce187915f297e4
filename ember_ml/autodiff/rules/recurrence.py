"""VJP rule of linear recurrences: the gradient is the same recurrence in reverse time."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.autodiff.rules.helpers import conj

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
    factors = conj(ops.broadcast_to(a, states.shape))
    later, first = _steps(factors, axis, reverse, 1, None), _steps(factors, axis, reverse, 0, 1)
    one = ops.ones_like(first)
    into, start = ops.linear_recurrence(
        _concat(later, one, axis, reverse), g[0], g[1], axis, not reverse
    )
    before = ops.zeros_like(first)
    if h0 is not None:
        before = ops.broadcast_to(
            ops.expand_dims(ops.broadcast_to(h0, start.shape), axis), before.shape
        )
    previous = _concat(before, _steps(states, axis, reverse, 0, -1), axis, reverse)
    return into * conj(previous), into, start * ops.squeeze(first, axis)


def _steps(x: Tensor, axis: int, reverse: bool, start: int, stop: int | None) -> Tensor:
    """Return a range of steps, counted in the direction of the recurrence."""
    part = slice(start, stop)
    if reverse:
        part = slice(None if stop is None else -stop, -start or None)
    return x[(slice(None),) * axis + (part,)]


def _concat(early: Tensor, late: Tensor, axis: int, reverse: bool) -> Tensor:
    return ops.concat([late, early] if reverse else [early, late], axis=axis)
