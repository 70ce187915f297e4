"""Rows for `ember_ml.ops.nn.gated_cells`; those of the public ops are in `recurrent`.

The saved arrays of a forward pass have no gradient, unlike what finite differences find, so its
rows omit float64; the rows of the public ops check its gradients. Adjoints get empty saved arrays,
which their bodies do not use; `tests/unit/native` checks the kernels, which do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.conformance.cases.nn.recurrent import sigmoid, small
from tests.conformance.table import FLOATS, case
from tests.unit.native import recurrence_cases as loops

BATCH, TIME, FEATURES, SIZE = 2, 4, 3, 2
VALUES = ("float16", "bfloat16", "float32")


def lstm_steps(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any = 0.0) -> Any:
    """Compute step by step."""
    entered, cells, gates, states = [], [c], [], []
    for at in range(x.shape[1]):
        entered.append(np.concatenate([h, x[:, at]], 1))
        i, f, g, o = np.split(x[:, at] @ w.T + h @ u.T + b, 4, axis=1)
        gates.append(np.concatenate([sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)], 1))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        cells.append(c)
        states.append(h)
    return np.stack(states, 1), h, c, np.stack(entered), np.stack(cells), np.stack(gates)


def gru_steps(x: Any, h: Any, w: Any, u: Any, b: Any = 0.0, d: Any = 0.0) -> Any:
    """Compute step by step."""
    states, gates = [h], []
    for at in range(x.shape[1]):
        r, z, n = np.split(x[:, at] @ w.T + b, 3, axis=1)
        hr, hz, hn = np.split(h @ u.T + d, 3, axis=1)
        r, z = sigmoid(r + hr), sigmoid(z + hz)
        n = np.tanh(n + r * hn)
        h = (1 - z) * n + z * h
        gates.append(np.concatenate([r, z, n, hn], 1))
        states.append(h)
    return np.stack(states[1:], 1), h, np.stack(states), np.stack(gates)


def adjoint(
    function: Callable[..., Any], operands: int, saved: int, results: int
) -> Callable[..., Any]:
    """Return the gradients by torch's autograd of a loop, as a function of an adjoint's operands.

    Args:
        function: Loop in torch.
        operands: Number of its required operands.
        saved: Number of saved arrays, which follow them and which the loop does not need.
        results: Number of gradients of results, which follow these; optional operands are last.
    """

    def reference(*arrays: Any, **options: Any) -> Any:
        given = [x if x is None else torch.tensor(x) for x in arrays]
        cotangents = given[operands + saved :][:results]
        leaves = given[:operands] + given[operands + saved + results :]
        sources = [x.requires_grad_() for x in leaves if x is not None and x.is_floating_point()]
        outs = function(*leaves, **options)
        outs = outs if isinstance(outs, tuple) else (outs,)
        grads = iter(torch.autograd.grad(outs, sources, cotangents))
        zero = np.zeros(())
        return tuple(
            zero if x is None else next(grads).numpy()
            for x in leaves
            if x is None or x.is_floating_point()
        )

    return reference


for batch in (BATCH, 9):  # the kernel of the LSTM differs from a batch of 8 on
    x, h, g = small(batch, TIME, FEATURES), small(batch, SIZE), small(batch, TIME, SIZE)
    for gates, steps, loop, key, states in (
        (4, lstm_steps, loops.lstm, "lstm", (h, h)),
        (3, gru_steps, loops.gru, "gru", (h,)),
    ):
        weights = small(gates * SIZE, FEATURES), small(gates * SIZE, SIZE)
        biases = (small(gates * SIZE),) * (3 - len(states))
        name = f"nn.gated_cells._{key}"
        case(f"{name}_steps", x, *states, *weights, *biases, reference=steps, dtypes=VALUES)
        case(f"{name}_steps", x, *states, *weights, reference=steps, dtypes=VALUES)
        saved = (small(0),) * (len(states) + 1)
        case(
            f"{name}_adjoint",
            *(x, *states, *weights, *saved, g, *states, *biases),
            reference=adjoint(loop, len(states) + 3, len(saved), len(states) + 1),
            dtypes=FLOATS,
            rtol=4.0,
        )
