"""Closed-form and liquid cells by the C kernels, for the arrays of any framework."""

from __future__ import annotations

from typing import Any

from ember_ml._native.frame import Frame
from ember_ml.backend.native_cells import flat, matrix, scale, sequence, with_first
from ember_ml.backend.native_products import weight_gradient


def closed_form_fits(operands: Any) -> bool:
    """Return whether the shapes of x, h0, weight_hh, weight, bias and timespans agree.

    The kernels would read beyond arrays of other shapes.

    Args:
        operands: Arrays of `ops.closed_form`.
    """
    x, h0, weight_hh, weight, bias, timespans = operands
    if len(x.shape) != 3 or len(h0.shape) != 2 or 0 in (*x.shape, h0.shape[1]):
        return False
    (batch, length, width), hidden = x.shape, h0.shape[1]
    heads = (3 if timespans is None else 4) * hidden
    fits = h0.shape[0] == batch and tuple(weight_hh.shape) == (width, hidden)
    if timespans is not None:
        fits = fits and tuple(timespans.shape) in ((batch, length, 1), (1, length, 1))
    if weight is None:
        return fits and bias is None and width == heads
    fits = fits and tuple(weight.shape) == (heads, width)
    return fits and (bias is None or tuple(bias.shape) == (heads,))


def liquid_fits(operands: Any) -> bool:
    """Return whether the shapes of x, v0, capacity, slopes, offsets and weights agree.

    Args:
        operands: Arrays of `ops.liquid`.
    """
    x, v0, capacity, slopes, offsets, weights = operands
    if len(x.shape) != 3 or len(v0.shape) != 2 or len(slopes.shape) != 2:
        return False
    if 0 in (*x.shape, len(slopes)):
        return False
    (batch, size), synapses = v0.shape, slopes.shape[0]
    shapes = [(batch, x.shape[1], 2 * size), (size,), (synapses, size), (synapses,)]
    given = [tuple(each.shape) for each in (x, capacity, slopes, offsets)]
    return given == shapes and tuple(weights.shape) == (2 * size, synapses)


def spans_in_time(frame: Frame, timespans: Any, length: int, batch: int) -> Any:
    """Return timespans, (batch or 1, time, 1), as a contiguous (time, batch)."""
    return frame.copy(timespans[:, :, 0].swapaxes(0, 1), (length, batch))


def closed_form(frame: Frame, operands: Any, gated: bool) -> tuple[Any, tuple[Any, ...]]:
    """Return the states of `ops.closed_form`, and the arrays for the backward pass.

    Args:
        frame: Access to the arrays.
        operands: x, h0, weight_hh, weight, bias and timespans, which fit and are not empty; the
            last three may be None.
        gated: Whether the two heads are mixed by the gate instead of added.
    """
    x, h0, weight_hh, weight, bias, timespans = operands
    (batch, length, width), size = x.shape, h0.shape[1]
    heads = 0 if weight is None else weight.shape[0]
    (rows, workspace), numbers = scale(frame, x, size, width, heads)
    spans = None if timespans is None else spans_in_time(frame, timespans, length, batch)
    states, gates = with_first(frame, h0, length), frame.empty((length, batch, heads or width))
    inner = frame.empty((length, batch, width)) if heads else None
    optional = [None if each is None else matrix(frame, each) for each in (weight, bias)]
    arrays = [rows, matrix(frame, weight_hh), workspace, *optional, spans, states, gates, inner]
    frame.call_arrays("ember_closed_form", arrays, [*numbers, int(gated)])
    return sequence(states), (states, gates, inner, spans)


def closed_form_adjoint(frame: Frame, operands: Any, gated: bool, saved: Any, g: Any) -> list[Any]:
    """Return the gradients of the operands; None for missing operands.

    Args:
        frame: Access to the arrays.
        operands: x, h0, weight_hh, weight, bias and timespans of `ops.closed_form`.
        gated: As in the forward pass.
        saved: Arrays of the forward pass.
        g: Gradient of the states.
    """
    x, h0, weight_hh, weight, bias, timespans = operands
    states, gates, inner, spans = saved
    size, width = h0.shape[1], x.shape[2]
    heads = 0 if weight is None else weight.shape[0]
    (rows, workspace), numbers = scale(frame, g, size, width, heads)
    dz, dh = frame.empty(tuple(gates.shape)), frame.empty(tuple(h0.shape))
    dx = frame.empty(tuple(inner.shape)) if heads else None
    second = matrix(frame, weight) if heads else None
    arrays = [rows, matrix(frame, weight_hh), workspace, second, spans, gates, inner, dz, dx, dh]
    frame.call_arrays("ember_closed_form_adjoint", arrays, [*numbers, int(gated)])
    entries = dz if dx is None else dx
    grads = [entries.swapaxes(0, 1), dh, weight_gradient(frame, entries, states[:-1])]
    grads.append(weight_gradient(frame, dz, inner) if heads else None)
    grads.append(None if bias is None else flat(dz).sum(0))
    if timespans is None:
        return [*grads, None]
    each = (dz[..., -size:] * gates[..., 2 * size : -size]).sum(-1).swapaxes(0, 1)[..., None]
    return [*grads, each if len(timespans) == len(each) else each.sum(0)[None]]


def liquid(
    frame: Frame, x: Any, v0: Any, capacity: Any, slopes: Any, offsets: Any, weights: Any
) -> tuple[Any, tuple[Any, ...]]:
    """Return the potentials of `ops.liquid`, and the arrays for the backward pass.

    Args:
        frame: Access to the arrays.
        x: Input currents and conductances, not empty.
        v0: Initial potentials.
        capacity: Capacities.
        slopes: Slopes of the synapses.
        offsets: Offsets of the synapses.
        weights: Weights of the synapses.
    """
    (batch, length, _), size, synapses = x.shape, v0.shape[1], slopes.shape[0]
    (rows, workspace), numbers = scale(frame, x, size, synapses, 2 * size)
    states, below = with_first(frame, v0, length), frame.empty((length, batch, size))
    opened = frame.empty((length, batch, synapses))
    matrices = [matrix(frame, each) for each in (weights, offsets, capacity)]
    arrays = [rows, matrix(frame, slopes), workspace, *matrices, states, below, opened]
    frame.call_arrays("ember_liquid", arrays, numbers)
    return sequence(states), (states, below, opened)


def liquid_adjoint(frame: Frame, operands: Any, saved: Any, g: Any) -> list[Any]:
    """Return the gradients of the operands of `ops.liquid`.

    Args:
        frame: Access to the arrays.
        operands: x, v0, capacity, slopes, offsets and weights.
        saved: Arrays of the forward pass.
        g: Gradient of the potentials.
    """
    _, v0, capacity, slopes, _, weights = operands
    states, below, opened = saved
    (length, batch, synapses), size = opened.shape, v0.shape[1]
    (rows, workspace), numbers = scale(frame, g, size, synapses, 2 * size)
    sums, dz = frame.empty((length, batch, 2 * size)), frame.empty(tuple(opened.shape))
    dv = frame.empty(tuple(v0.shape))
    dv[...] = 0
    matrices = [matrix(frame, each) for each in (weights, capacity)]
    arrays = [rows, matrix(frame, slopes), workspace, *matrices, states, below, opened]
    frame.call_arrays("ember_liquid_adjoint", [*arrays, sums, dz, dv], numbers)
    before = flat(states[:-1])
    d_capacity = (flat(sums)[:, :size] * before + flat(sums)[:, size:]).sum(0)
    return [
        sums.swapaxes(0, 1),
        dv,
        d_capacity,
        weight_gradient(frame, dz, before),
        flat(dz).sum(0),
        weight_gradient(frame, sums, opened),
    ]
