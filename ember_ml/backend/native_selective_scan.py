"""Arguments of the C kernels of the selective scan, for the arrays of any framework."""

from __future__ import annotations

from typing import Any

from ember_ml._native.frame import Frame

CHUNK = 16
"""Number of steps between two states that the forward pass stores."""
_COST = 8  # of an exponential, in operations


def fits(operands: Any, *states: Any, saved: Any = None, grad_y: Any = None) -> bool:
    """Return whether the arrays have the shapes that the kernels read, and are not empty.

    Args:
        operands: u, dt, a, b, c and d of `ops.selective_scan`; d may be None.
        states: Arrays in the shape of a state, (batch, states, channels), or None.
        saved: Stored states, or None.
        grad_y: Gradient of the output, or None.
    """
    u, dt, a, b, c, d = operands
    if len(u.shape) != 3 or len(a.shape) != 2 or 0 in (*u.shape, *a.shape):
        return False
    (batch, time, channels), number = u.shape, a.shape[1]
    expected = [(dt, u.shape), (a, (channels, number)), (grad_y, u.shape), (d, (channels,))]
    expected += [(x, (batch, time, number)) for x in (b, c)]
    expected += [(x, (batch, number, channels)) for x in states]
    expected.append((saved, (batch, time // CHUNK, number, channels)))
    return all(x is None or tuple(x.shape) == tuple(shape) for x, shape in expected)


def _arguments(
    frame: Frame, operands: Any, state: Any, saved: Any, last: Any, backward: bool
) -> tuple[list[Any], list[int]]:
    """Return the arrays and numbers that both kernels take."""
    u, dt, a, b, c, d = operands
    (batch, time, channels), states = u.shape, a.shape[1]
    slots = min(batch, frame.threads_for(batch * time * channels * states * _COST))
    size = frame.size("ember_selective_scan_workspace", states, CHUNK, int(backward))
    rows = [frame.rows(x) for x in (u, dt, b, c)]
    numbers = [batch, time, channels, states, CHUNK, slots, size]
    for _, batch_stride, time_stride in rows:
        numbers += (batch_stride, time_stride)
    d = None if d is None else frame.copy(d, (channels,))
    arrays = [rows[0][0], rows[1][0], frame.copy(a.T, (states, channels)), rows[2][0], rows[3][0]]
    return [*arrays, d, state, saved, last, frame.empty((slots * size,))], numbers


def forward(frame: Frame, operands: Any, state: Any) -> tuple[Any, Any, Any]:
    """Return the output, the last state and the state after each whole chunk of steps.

    States of the model are (batch, states, channels).

    Args:
        frame: Access to the arrays.
        operands: u, dt, a, b, c and d of `ops.selective_scan`, not empty; d may be None.
        state: Contiguous initial state, or None.
    """
    u, a = operands[0], operands[2]
    (batch, time, channels), states = u.shape, a.shape[1]
    saved = frame.empty((batch, time // CHUNK, states, channels))
    last, y = frame.empty((batch, states, channels)), frame.empty((batch, time, channels))
    arrays, numbers = _arguments(frame, operands, state, saved, last, backward=False)
    frame.call_arrays("ember_selective_scan", [*arrays, y], numbers)
    return y, last, saved


def adjoint(
    frame: Frame, operands: Any, state: Any, saved: Any, grad_y: Any, grad_last: Any
) -> list[Any]:
    """Return the gradients of u, dt, a, b, c, d and the initial state; None for missing ones.

    Args:
        frame: Access to the arrays.
        operands: As in `forward`.
        state: Contiguous initial state, or None.
        saved: Stored states.
        grad_y: Gradient of the output.
        grad_last: Contiguous gradient of the last state, or None.
    """
    u, a, d = operands[0], operands[2], operands[5]
    (batch, time, channels), states = u.shape, a.shape[1]
    arrays, numbers = _arguments(frame, operands, state, saved, None, backward=True)
    g, *strides = frame.rows(grad_y)
    sequence, narrow, model = (batch, time, channels), (batch, time, states), (states, channels)
    grad_a = frame.empty((batch, *model))
    grad_d = None if d is None else frame.empty((batch, channels))
    grad_state = None if state is None else frame.empty((batch, *model))
    grads = [frame.empty(shape) for shape in (sequence, sequence, narrow, narrow)]
    outputs = [*grads[:2], grad_a, *grads[2:], grad_d, grad_state]
    arrays += [g, grad_last, *outputs]
    frame.call_arrays("ember_selective_scan_adjoint", arrays, [*numbers, *strides])
    total_d = None if grad_d is None else grad_d.sum(0)
    return [*grads[:2], grad_a.sum(0).T, *grads[2:], total_d, grad_state]
