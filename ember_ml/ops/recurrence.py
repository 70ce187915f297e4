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


@composite(rule=rules.FLOAT)
def _linear_recurrence_adjoint(
    a: TensorLike,
    states: TensorLike,
    g: TensorLike,
    g_last: TensorLike,
    h0: TensorLike | None = None,
    axis: int = 1,
    reverse: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of a, b and h0: the same recurrence in reverse time.

    They have the shapes of the states and of one state.

    Args:
        a: Factors.
        states: States after each step; at least one step.
        g: Gradient of the states.
        g_last: Gradient of the last state.
        h0: Initial state. Default: zeros.
        axis: Time axis of the states, not negative.
        reverse: Whether the recurrence runs backward in time.
    """
    factors = _conj(ops.broadcast_to(a, states.shape))
    later, first = _steps(factors, axis, reverse, 1, None), _steps(factors, axis, reverse, 0, 1)
    one = ops.ones_like(first)
    into, start = ops.linear_recurrence(
        _concat(later, one, axis, reverse), g, g_last, axis, not reverse
    )
    before = ops.zeros_like(first)
    if h0 is not None:
        before = ops.broadcast_to(
            ops.expand_dims(ops.broadcast_to(h0, start.shape), axis), before.shape
        )
    previous = _concat(before, _steps(states, axis, reverse, 0, -1), axis, reverse)
    return into * _conj(previous), into, start * ops.squeeze(first, axis)


def _conj(x: Tensor) -> Tensor:
    return ops.conj(x) if x.dtype.kind == "complex" else x


def _steps(x: Tensor, axis: int, reverse: bool, start: int, stop: int | None) -> Tensor:
    """Return a range of steps, counted in the direction of the recurrence."""
    part = slice(start, stop)
    if reverse:
        part = slice(None if stop is None else -stop, -start or None)
    return x[(slice(None),) * axis + (part,)]


def _concat(early: Tensor, late: Tensor, axis: int, reverse: bool) -> Tensor:
    return ops.concat([late, early] if reverse else [early, late], axis=axis)
