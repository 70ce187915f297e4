"""Closed-form and liquid cells with the arrays that their gradients need, and their adjoints.

Time is the first axis of these arrays. They have no gradient: the bodies of the adjoints
recompute them, so the adjoints can be differentiated.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, composite
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.nn.gated_cells import Parts, Steps, joined, products

__all__: list[str] = []


@composite(rule=rules.REAL_FLOAT)
def _closed_form_steps(
    x: TensorLike,
    h0: TensorLike,
    weight_hh: TensorLike,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    timespans: TensorLike | None = None,
    gated: bool = True,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the result of `closed_form`, and arrays for the gradient.

    The last three results are h before and after each step, (time + 1, batch, hidden); tanh(z_1),
    tanh(z_2), z_3 if there are timespans, and t, (time, batch, heads); and the inner features
    after tanh, (time, batch, inner features), or none without `weight`. At least one step.
    """
    states, gates, inner = _closed_form_loop(x, h0, weight_hh, weight, bias, timespans, gated)
    saved = ops.stack(states), joined(gates), ops.stack(inner)
    return ops.stack(states[1:], axis=1), *map(ops.stop_gradient, saved)


def _closed_form_loop(
    x: Tensor,
    h: Tensor,
    weight_hh: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    timespans: Tensor | None,
    gated: bool,
) -> tuple[Steps, Parts, Steps]:
    """Return h before and after each step, the parts of z, and the inner features."""
    size, states, gates, inners = h.shape[-1], [h], [], []
    spans = [None] * x.shape[1] if timespans is None else ops.unstack(timespans, 1)
    for entry, span in zip(ops.unstack(x, 1), spans, strict=True):
        z = entry + ops.linear(h, weight_hh)
        inner = z[:, :0] if weight is None else ops.tanh(z)
        z = z if weight is None else ops.linear(inner, weight, bias)
        f1, f2 = ops.split(ops.tanh(z[:, : 2 * size]), 2, axis=-1)
        gate, slow = z[:, 2 * size :], []
        if span is not None:
            slow, gate = [gate[:, :-size]], gate[:, :-size] * span + gate[:, -size:]
        gate = ops.sigmoid(gate)
        h = f1 + gate * (f2 - f1 if gated else f2)
        states.append(h)
        gates.append((f1, f2, *slow, gate))
        inners.append(inner)
    return states, gates, inners


@composite(rule=rules.REAL_FLOAT)
def _closed_form_adjoint(
    x: TensorLike,
    h0: TensorLike,
    weight_hh: TensorLike,
    states: TensorLike,
    gates: TensorLike,
    inner: TensorLike,
    g: TensorLike,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    timespans: TensorLike | None = None,
    gated: bool = True,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of the tensors of `closed_form`; zeros for missing operands."""
    dh, zero = ops.zeros_like(h0), ops.zeros_like(h0[0, 0])
    operands = x, h0, weight_hh, weight, bias, timespans
    state_steps, gate_steps, inner_steps = _closed_form_loop(*operands, gated)
    heads, entries, spans = [], [], []
    for at, grad in reversed(list(enumerate(ops.unstack(g, 1)))):
        f1, f2, *slow, t = gate_steps[at]
        dh = dh + grad
        dt = dh * (f2 - f1 if gated else f2) * t * (1 - t)
        first = dh * (1 - f1 * f1) * (1 - t) if gated else dh * (1 - f1 * f1)
        parts = [first, dh * t * (1 - f2 * f2)]
        if timespans is not None:
            parts.append(dt * timespans[:, at])
            spans.append(ops.sum(dt * slow[0], axis=-1, keepdims=True))
        dz = ops.concat([*parts, dt], axis=-1)
        heads.append(dz)
        if weight is not None:
            dz = ops.matmul(dz, weight) * (1 - inner_steps[at] * inner_steps[at])
        entries.append(dz)
        dh = ops.matmul(dz, weight_hh)
    dx, outer = (ops.stack(each[::-1], axis=1) for each in (entries, heads))
    grads = [dx, dh, products(dx, ops.stack(state_steps[:-1], axis=1))]
    grads.append(zero if weight is None else products(outer, ops.stack(inner_steps, axis=1)))
    grads.append(zero if bias is None else ops.sum(outer, axis=(0, 1)))
    if timespans is None:
        return *grads, zero
    by_example = ops.stack(spans[::-1], axis=1)
    shared = timespans.shape[0] != x.shape[0]
    return *grads, ops.sum(by_example, axis=0, keepdims=True) if shared else by_example


@composite(rule=rules.REAL_FLOAT)
def _liquid_steps(
    x: TensorLike,
    v0: TensorLike,
    capacity: TensorLike,
    slopes: TensorLike,
    offsets: TensorLike,
    weights: TensorLike,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the result of `liquid`, and arrays for the gradient.

    The last three results are the potentials before and after each step, (time + 1, batch,
    neurons); the denominators, (time, batch, neurons); and s, (time, batch, synapses). At least
    one step.
    """
    steps = _liquid_loop(x, v0, capacity, slopes, offsets, weights)
    saved = [ops.stop_gradient(ops.stack(each)) for each in steps]
    return ops.stack(steps[0][1:], axis=1), *saved


def _liquid_loop(
    x: Tensor, v: Tensor, capacity: Tensor, slopes: Tensor, offsets: Tensor, weights: Tensor
) -> tuple[Steps, Steps, Steps]:
    """Return the potentials before and after each step, the denominators and s."""
    size, states, below, opened = v.shape[-1], [v], [], []
    for entry in ops.unstack(x, 1):
        s = ops.sigmoid(ops.linear(v, slopes, offsets))
        sums = entry + ops.linear(s, weights)
        below.append(capacity + sums[:, size:])
        v = (capacity * v + sums[:, :size]) / below[-1]
        states.append(v)
        opened.append(s)
    return states, below, opened


@composite(rule=rules.REAL_FLOAT)
def _liquid_adjoint(
    x: TensorLike,
    v0: TensorLike,
    capacity: TensorLike,
    slopes: TensorLike,
    offsets: TensorLike,
    weights: TensorLike,
    states: TensorLike,
    below: TensorLike,
    opened: TensorLike,
    g: TensorLike,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of the operands of `liquid`."""
    state_steps, below_steps, open_steps = _liquid_loop(x, v0, capacity, slopes, offsets, weights)
    dv, sums, inputs = ops.zeros_like(v0), [], []
    for at, grad in reversed(list(enumerate(ops.unstack(g, 1)))):
        current, s = (dv + grad) / below_steps[at], open_steps[at]
        sums.append(ops.concat([current, -current * state_steps[at + 1]], axis=-1))
        inputs.append(ops.matmul(sums[-1], weights) * s * (1 - s))
        dv = ops.matmul(inputs[-1], slopes) + current * capacity
    dx, dz = (ops.stack(each[::-1], axis=1) for each in (sums, inputs))
    before = ops.stack(state_steps[:-1], axis=1)
    current, conductance = ops.split(dx, 2, axis=-1)
    return (
        dx,
        dv,
        ops.sum(current * before + conductance, axis=(0, 1)),
        products(dz, before),
        ops.sum(dz, axis=(0, 1)),
        products(dx, ops.stack(open_steps, axis=1)),
    )


@composite(rule=rules.REAL_FLOAT)
def _synapses_adjoint(
    v: TensorLike,
    slopes: TensorLike,
    offsets: TensorLike,
    weights: TensorLike,
    g: TensorLike,
    sources: IndexLike,
    destinations: IndexLike,
    size: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of v, slopes, offsets and weights of `synapses`."""
    read = ops.one_hot(sources, v.shape[-1], dtype=v.dtype)
    write = ops.one_hot(destinations, size, dtype=v.dtype)
    flat = ops.reshape(v, (-1, v.shape[-1]))
    potentials = ops.linear(flat, read)  # (positions, synapses)
    s = ops.sigmoid(potentials * slopes + offsets)
    grads = ops.reshape(g, (flat.shape[0], weights.shape[0], size))
    into = ops.linear(grads, write)  # (positions, kinds, synapses)
    dz = ops.sum(into * weights, axis=1) * s * (1 - s)
    return (
        ops.reshape(ops.matmul(dz * slopes, read), v.shape),
        ops.sum(dz * potentials, axis=0),
        ops.sum(dz, axis=0),
        ops.sum(into * ops.expand_dims(s, 1), axis=0),
    )
