"""LSTM and GRU by the C kernels, for the arrays of any framework.

Products of all steps are those of the framework, except gradients of small weights; the kernels
compute what depends on the step before. Time is the first axis of the saved arrays. `frame.linear`
is `x @ weight.T + bias`.
"""

from __future__ import annotations

from typing import Any

from ember_ml._native.frame import Frame
from ember_ml.backend.native_products import weight_gradient

_JOINT_BATCH = 8
"""From this batch size on, an LSTM multiplies h and x with their weights in one product per step;
below it, the weights would be read from memory in every step for few rows."""


def have_shapes(arrays: Any, shapes: Any) -> bool:
    """Return whether arrays have these shapes, and are not empty; None has any shape.

    Args:
        arrays: Arrays, or None.
        shapes: Expected shape of each array.
    """
    pairs = zip(arrays, shapes, strict=True)
    return all(x is None or (tuple(x.shape) == shape and 0 not in shape) for x, shape in pairs)


def fits(gates: int, x: Any, states: Any, weight_ih: Any, weight_hh: Any, *biases: Any) -> bool:
    """Return whether shapes agree and no array is empty; the kernels do not check them.

    Args:
        gates: 4 for an LSTM, 3 for a GRU.
        x: Input.
        states: Initial states, and other arrays of this shape.
        weight_ih: Weights of the input.
        weight_hh: Weights of the hidden state.
        biases: Biases, or None.
    """
    if len(x.shape) != 3 or len(states[0].shape) != 2 or 0 in x.shape:
        return False
    (batch, _, features), hidden = x.shape, states[0].shape[1]
    width = gates * hidden
    shapes: list[Any] = [(batch, hidden)] * len(states) + [(width, features), (width, hidden)]
    shapes += [(width,)] * len(biases)
    return have_shapes((*states, weight_ih, weight_hh, *biases), shapes)


def sequence(states: Any) -> Any:
    """Return the states after each step, (batch, time, hidden)."""
    return states[1:].swapaxes(0, 1)


def with_first(frame: Frame, first: Any, length: int) -> Any:
    """Return an array for states, (time + 1, batch, hidden), which starts with the given one."""
    states = frame.empty((length + 1, *first.shape))
    states[0] = first
    return states


def scale(
    frame: Frame, x: Any, hidden: int, width: int, heads: int = 0
) -> tuple[list[Any], list[int]]:
    """Return an input with contiguous rows, the workspace, and the numbers that all kernels take.

    Args:
        frame: Access to the arrays.
        x: Input or gradient of the output, (batch, time, features).
        hidden: Number of hidden features.
        width: Width of the first product.
        heads: Width of the second product; 0 if there is none.
    """
    batch, length, _ = x.shape
    rows, *strides = frame.rows(x)
    work = batch * length * (hidden * width + width * heads) // 8
    slots = min(batch, frame.threads_for(work))
    size = frame.size("ember_cell_workspace", batch, hidden, width, heads, slots)
    return [rows, frame.empty((size,))], [batch, length, hidden, width, heads, slots, *strides]


def matrix(frame: Frame, x: Any) -> Any:
    """Return a contiguous array."""
    return frame.copy(x, tuple(x.shape))


def flat(x: Any) -> Any:
    """Return (time, batch, features) as (time * batch, features)."""
    return x.reshape((-1, x.shape[-1]))


def in_time(frame: Frame, x: Any) -> Any:
    """Return (batch, time, features) as a contiguous (time * batch, features)."""
    batch, length, size = x.shape
    return flat(frame.copy(x.swapaxes(0, 1), (length, batch, size)))


def _input_gradient(x: Any, weight: Any, dz: Any) -> Any:
    batch, length, size = x.shape
    return (flat(dz) @ weight).reshape((length, batch, size)).swapaxes(0, 1)


def lstm(
    frame: Frame, x: Any, h0: Any, c0: Any, weight_ih: Any, weight_hh: Any, bias: Any
) -> tuple[Any, tuple[Any, ...]]:
    """Return the results of `ops.lstm`, and the arrays for the backward pass.

    Args:
        frame: Access to the arrays.
        x: Input, not empty.
        h0: Initial hidden state.
        c0: Initial cell state.
        weight_ih: Weights of the input.
        weight_hh: Weights of the hidden state.
        bias: Sum of the biases, or None.
    """
    (batch, length, features), size = x.shape, h0.shape[1]
    joint = batch >= _JOINT_BATCH
    depth = size + features if joint else size
    entries, weight = x, weight_hh
    if joint:
        weight = frame.empty((4 * size, depth))
        weight[:, :size], weight[:, size:] = weight_hh, weight_ih
        if bias is None:
            bias = frame.empty((4 * size,))
            bias[...] = 0
    else:
        entries = frame.linear(x, weight_ih, bias)
    (rows, workspace), numbers = scale(frame, entries, depth, 4 * size)
    numbers[2] = size
    states, cells = frame.empty((length + 1, batch, depth)), with_first(frame, c0, length)
    states[0, :, :size] = h0
    gates, y = frame.empty((length, batch, 4 * size)), frame.empty((batch, length, size))
    start = matrix(frame, bias) if joint else None
    arrays = [rows, matrix(frame, weight), workspace, start, states, cells, gates, y]
    frame.call_arrays("ember_lstm", arrays, [*numbers, depth])
    return (y, states[-1, :, :size], cells[-1]), (states[:-1], cells, gates)


def lstm_adjoint(
    frame: Frame,
    x: Any,
    weight_ih: Any,
    weight_hh: Any,
    saved: Any,
    cotangents: Any,
    needs_x: bool = True,
) -> list[Any]:
    """Return the gradients of x (or None), h0, c0, both weights and the sum of the biases.

    Args:
        frame: Access to the arrays.
        x: Input.
        weight_ih: Weights of the input.
        weight_hh: Weights of the hidden state.
        saved: Arrays of the forward pass.
        cotangents: Gradients of the three results.
        needs_x: Whether the gradient of x is needed.
    """
    entered, cells, gates = saved
    size = cells.shape[2]
    (rows, workspace), numbers = scale(frame, cotangents[0], size, 4 * size)
    dz, dh = frame.empty(tuple(gates.shape)), frame.empty(tuple(cells.shape[1:]))
    dc = with_first(frame, cotangents[2], 0)[0]
    last = matrix(frame, cotangents[1])
    arrays = [rows, matrix(frame, weight_hh), workspace, cells, gates, last, dz, dh, dc]
    frame.call_arrays("ember_lstm_adjoint", arrays, numbers)
    products = weight_gradient(frame, dz, entered)
    bias = flat(dz).sum(0)
    dx = _input_gradient(x, weight_ih, dz) if needs_x else None
    if entered.shape[2] == size:
        return [dx, dh, dc, weight_gradient(frame, dz, in_time(frame, x)), products, bias]
    return [dx, dh, dc, products[:, size:], products[:, :size], bias]


def gru(
    frame: Frame, x: Any, h0: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any
) -> tuple[Any, tuple[Any, ...]]:
    """Return the results of `ops.gru`, and the arrays for the backward pass.

    Args:
        frame: Access to the arrays.
        x: Input, not empty.
        h0: Initial hidden state.
        weight_ih: Weights of the input.
        weight_hh: Weights of the hidden state.
        bias_ih: Biases of the input, or None.
        bias_hh: Biases of the hidden state, or None.
    """
    size, length = h0.shape[1], x.shape[1]
    (rows, workspace), numbers = scale(frame, frame.linear(x, weight_ih, bias_ih), size, 3 * size)
    states, gates = with_first(frame, h0, length), frame.empty((length, x.shape[0], 4 * size))
    bias = None if bias_hh is None else matrix(frame, bias_hh)
    arrays = [rows, matrix(frame, weight_hh), workspace, bias, states, gates]
    frame.call_arrays("ember_gru", arrays, numbers)
    return (sequence(states), states[-1]), (states, gates)


def gru_adjoint(
    frame: Frame,
    x: Any,
    weight_ih: Any,
    weight_hh: Any,
    saved: Any,
    cotangents: Any,
    needs_x: bool = True,
) -> list[Any]:
    """Return the gradients of x (or None), h0, both weights and both biases.

    Args:
        frame: Access to the arrays.
        x: Input.
        weight_ih: Weights of the input.
        weight_hh: Weights of the hidden state.
        saved: Arrays of the forward pass.
        cotangents: Gradients of the two results.
        needs_x: Whether the gradient of x is needed.
    """
    states, gates = saved
    size = states.shape[2]
    (rows, workspace), numbers = scale(frame, cotangents[0], size, 3 * size)
    shape = (*gates.shape[:2], 3 * size)
    dz, inner = frame.empty(shape), frame.empty(shape)
    dh = with_first(frame, cotangents[1], 0)[0]
    arrays = [rows, matrix(frame, weight_hh), workspace, states, gates, dz, inner, dh]
    frame.call_arrays("ember_gru_adjoint", arrays, numbers)
    dx = _input_gradient(x, weight_ih, dz) if needs_x else None
    weight_ih = weight_gradient(frame, dz, in_time(frame, x))
    weight_hh = weight_gradient(frame, inner, states[:-1])
    return [dx, dh, weight_ih, weight_hh, flat(dz).sum(0), flat(inner).sum(0)]
