"""Linear recurrences along a time axis."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.backend.recurrences import geometry

__all__ = ["linear_recurrence"]


@composite(rule=rules.FLOAT)
def linear_recurrence(
    a: TensorLike,
    b: TensorLike,
    h0: TensorLike | None = None,
    axis: int = 1,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    r"""Return the states of an elementwise linear recurrence along an axis.

    .. math:: h_t = a_t \odot h_{t-1} + b_t

    Where it is faster, time is split into chunks that are computed in parallel. The product of the
    factors over some dozens of steps must then be finite. Nothing is divided by it.

    Args:
        a: Factors; broadcasts with b.
        b: Input of each step.
        h0: State before the first step; broadcasts to the shape of a step. Default: zeros.
        axis: Time axis in the common shape of a and b.
        reverse: Whether time runs backward: h_t = a_t h_{t+1} + b_t.

    Returns:
        The states after each step, and the state after the last step in the direction of time.

    Example:
        >>> h, final = linear_recurrence([0.5, 0.5, 2.0], [1.0, 1.0, 1.0], axis=0)
        >>> h.tolist(), final.item()
        ([1.0, 1.5, 4.0], 4.0)
    """
    shape, _, axis = geometry(a.shape, b.shape, None if h0 is None else h0.shape, axis)
    factors = ops.unstack(ops.broadcast_to(a, shape), axis)
    inputs = ops.unstack(ops.broadcast_to(b, shape), axis)
    state = ops.zeros_like(ops.sum(ops.broadcast_to(b, shape), axis))
    if h0 is not None:
        state = ops.broadcast_to(h0, state.shape)
    states = []
    for factor, entry in list(zip(factors, inputs, strict=True))[:: -1 if reverse else 1]:
        state = factor * state + entry
        states.append(state)
    if not states:
        return ops.broadcast_to(b, shape), state
    return ops.stack(states[:: -1 if reverse else 1], axis), state
