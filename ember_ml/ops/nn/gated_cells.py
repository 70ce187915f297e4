"""LSTM and GRU with the arrays that their gradients need, and their adjoints.

Time is the first axis of these arrays. They have no gradient: the bodies of the adjoints
recompute them, so the adjoints can be differentiated.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.tensor import Tensor, TensorLike

__all__: list[str] = []

Steps = list[Tensor]
Parts = list[tuple[Tensor, ...]]


@composite(rule=rules.REAL_FLOAT)
def _lstm_steps(
    x: TensorLike,
    h0: TensorLike,
    c0: TensorLike,
    weight_ih: TensorLike,
    weight_hh: TensorLike,
    bias: TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the results of `lstm` for the sum of its biases, and arrays for the gradient.

    The last three results are h before each step with the input, (time, batch, hidden +
    features); c before and after each step, (time + 1, batch, hidden); and the gates i, f, g
    and o, (time, batch, 4 hidden). At least one step.
    """
    states, cells, gates = _lstm_loop(x, h0, c0, weight_ih, weight_hh, bias)
    entered = ops.concat([ops.stack(states[:-1]), ops.swapaxes(x, 0, 1)], axis=-1)
    saved = entered, ops.stack(cells), joined(gates)
    y = ops.stack(states[1:], axis=1)
    return y, states[-1], cells[-1], *map(ops.stop_gradient, saved)


def _lstm_loop(
    x: Tensor, h: Tensor, c: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor | None
) -> tuple[Steps, Steps, Parts]:
    """Return h and c before and after each step, and the gates of each step."""
    states, cells, gates = [h], [c], []
    for entry in ops.unstack(ops.linear(x, weight_ih, bias), 1):
        i, f, g, o = ops.split(entry + ops.linear(h, weight_hh), 4, axis=-1)
        i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
        c = f * c + i * g
        h = o * ops.tanh(c)
        states.append(h)
        cells.append(c)
        gates.append((i, f, g, o))
    return states, cells, gates


@composite(rule=rules.REAL_FLOAT)
def _lstm_adjoint(
    x: TensorLike,
    h0: TensorLike,
    c0: TensorLike,
    weight_ih: TensorLike,
    weight_hh: TensorLike,
    entered: TensorLike,
    cells: TensorLike,
    gates: TensorLike,
    g: TensorLike,
    g_h: TensorLike,
    g_c: TensorLike,
    bias: TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of x, h0, c0, both weights and the sum of the biases."""
    states, cell_steps, gate_steps = _lstm_loop(x, h0, c0, weight_ih, weight_hh, bias)
    dh, dc, steps = g_h, g_c, []
    for at, grad in reversed(list(enumerate(ops.unstack(g, 1)))):
        i, f, u, o = gate_steps[at]
        dh, squashed = dh + grad, ops.tanh(cell_steps[at + 1])
        dc = dc + dh * o * (1 - squashed * squashed)
        parts = [dc * u * i * (1 - i), dc * cell_steps[at] * f * (1 - f), dc * i * (1 - u * u)]
        steps.append(ops.concat([*parts, dh * squashed * o * (1 - o)], axis=-1))
        dh, dc = ops.matmul(steps[-1], weight_hh), dc * f
    dz = ops.stack(steps[::-1], axis=1)
    weights = products(dz, x), products(dz, ops.stack(states[:-1], axis=1))
    return ops.matmul(dz, weight_ih), dh, dc, *weights, ops.sum(dz, axis=(0, 1))


@composite(rule=rules.REAL_FLOAT)
def _gru_steps(
    x: TensorLike,
    h0: TensorLike,
    weight_ih: TensorLike,
    weight_hh: TensorLike,
    bias_ih: TensorLike | None = None,
    bias_hh: TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the results of `gru`, and arrays for the gradient.

    The last two results are h before and after each step, (time + 1, batch, hidden), and the
    gates r, z and n, and the recurrent part of n, (time, batch, 4 hidden). At least one step.
    """
    states, gates = _gru_loop(x, h0, weight_ih, weight_hh, bias_ih, bias_hh)
    saved = ops.stop_gradient(ops.stack(states)), ops.stop_gradient(joined(gates))
    return ops.stack(states[1:], axis=1), states[-1], *saved


def _gru_loop(
    x: Tensor,
    h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None,
    bias_hh: Tensor | None,
) -> tuple[Steps, Parts]:
    """Return h before and after each step, and the gates of each step."""
    states, gates = [h], []
    for entry in ops.unstack(ops.linear(x, weight_ih, bias_ih), 1):
        r, z, n = ops.split(entry, 3, axis=-1)
        hr, hz, hn = ops.split(ops.linear(h, weight_hh, bias_hh), 3, axis=-1)
        r, z = ops.sigmoid(r + hr), ops.sigmoid(z + hz)
        n = ops.tanh(n + r * hn)
        h = n + z * (h - n)
        states.append(h)
        gates.append((r, z, n, hn))
    return states, gates


@composite(rule=rules.REAL_FLOAT)
def _gru_adjoint(
    x: TensorLike,
    h0: TensorLike,
    weight_ih: TensorLike,
    weight_hh: TensorLike,
    states: TensorLike,
    gates: TensorLike,
    g: TensorLike,
    g_h: TensorLike,
    bias_ih: TensorLike | None = None,
    bias_hh: TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of x, h0, both weights and both biases."""
    state_steps, gate_steps = _gru_loop(x, h0, weight_ih, weight_hh, bias_ih, bias_hh)
    dh, outer_steps, inner_steps = g_h, [], []
    for at, grad in reversed(list(enumerate(ops.unstack(g, 1)))):
        r, z, n, hn = gate_steps[at]
        dh = dh + grad
        dn = dh * (1 - z) * (1 - n * n)
        both = [dn * hn * r * (1 - r), dh * (state_steps[at] - n) * z * (1 - z)]
        outer_steps.append(ops.concat([*both, dn], axis=-1))
        inner_steps.append(ops.concat([*both, dn * r], axis=-1))
        dh = dh * z + ops.matmul(inner_steps[-1], weight_hh)
    outer, inner = (ops.stack(each[::-1], axis=1) for each in (outer_steps, inner_steps))
    weights = products(outer, x), products(inner, ops.stack(state_steps[:-1], axis=1))
    biases = ops.sum(outer, axis=(0, 1)), ops.sum(inner, axis=(0, 1))
    return ops.matmul(outer, weight_ih), dh, *weights, *biases


def joined(steps: Parts) -> Tensor:
    """Return the parts of all steps as one tensor, (time, batch, features)."""
    return ops.concat([ops.stack(part) for part in zip(*steps, strict=True)], axis=-1)


def products(dz: Tensor, rows: Tensor) -> Tensor:
    """Return the gradient of the weights that multiply the rows."""
    return ops.tensordot(dz, rows, axes=([0, 1], [0, 1]))
