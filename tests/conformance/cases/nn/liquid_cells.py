"""Rows for `ember_ml.ops.nn.liquid_cells`; those of the public ops are in `recurrent`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.cases.nn.gated_cells import VALUES, adjoint
from tests.conformance.cases.nn.recurrent import sigmoid, small, tame
from tests.conformance.table import FLOATS, case, integers
from tests.unit.native import recurrence_cases as loops

BATCH, TIME, SIZE, INNER, SYNAPSES = 2, 4, 2, 5, 4
KEY = "nn.liquid_cells."


def closed_form_steps(
    x: Any, h: Any, u: Any, w: Any = None, b: Any = 0.0, spans: Any = None, gated: bool = True
) -> Any:
    """Compute step by step."""
    states, gates, inner = [h], [], []
    for at in range(x.shape[1]):
        z = x[:, at] + h @ u.T
        inner.append(z[:, :0] if w is None else np.tanh(z))
        z = z if w is None else inner[-1] @ w.T + b
        f1, f2, *slow = np.split(z, 3 if spans is None else 4, axis=1)
        t = sigmoid(slow[0] if spans is None else slow[0] * spans[:, at] + slow[1])
        f1, f2 = np.tanh(f1), np.tanh(f2)
        h = f1 * (1 - t if gated else 1) + t * f2
        states.append(h)
        gates.append(np.concatenate([f1, f2, *slow[:-1], t], 1))
    return np.stack(states[1:], 1), np.stack(states), np.stack(gates), np.stack(inner)


def liquid_steps(x: Any, v: Any, c: Any, a: Any, b: Any, w: Any) -> Any:
    """Compute step by step."""
    states, below, opened = [v], [], []
    for at in range(x.shape[1]):
        opened.append(sigmoid(v @ a.T + b))
        current, conductance = np.split(x[:, at] + opened[-1] @ w.T, 2, axis=1)
        below.append(c + conductance)
        v = (c * v + current) / below[-1]
        states.append(v)
    return np.stack(states[1:], 1), np.stack(states), np.stack(below), np.stack(opened)


h, g = small(BATCH, SIZE), small(BATCH, TIME, SIZE)
for heads, inner, spans, gated in (
    (3, None, None, True),
    (3, INNER, None, True),
    (4, INNER, BATCH, False),
    (4, None, 1, True),
):
    width = inner or heads * SIZE
    operands = small(BATCH, TIME, width), h, small(width, SIZE)
    second = small(heads * SIZE, width), small(heads * SIZE)
    optional = (
        *((None, None) if inner is None else second),
        None if spans is None else tame(spans, TIME, 1),
    )
    case(
        f"{KEY}_closed_form_steps",
        *(*operands, *optional, gated),
        reference=closed_form_steps,
        dtypes=VALUES,
    )
    case(
        f"{KEY}_closed_form_adjoint",
        *(*operands, *[small(0)] * 3, g, *optional),
        reference=adjoint(loops.closed_form, 3, 3, 1),
        dtypes=FLOATS,
        rtol=4.0,
        gated=gated,
    )

neurons = tame(BATCH, TIME, 2 * SIZE), h, tame(SIZE), small(SYNAPSES, SIZE), small(SYNAPSES)
neurons = *neurons, tame(2 * SIZE, SYNAPSES)
case(f"{KEY}_liquid_steps", *neurons, reference=liquid_steps, dtypes=VALUES)
case(
    f"{KEY}_liquid_adjoint",
    *(*neurons, *[small(0)] * 3, g),
    reference=adjoint(loops.liquid, 6, 3, 1),
    dtypes=FLOATS,
    rtol=4.0,
)
for lead in ((), (2, 3)):
    case(
        f"{KEY}_synapses_adjoint",
        *(small(*lead, 3), small(SYNAPSES), small(SYNAPSES), small(2, SYNAPSES)),
        *(small(*lead, 2 * SIZE), integers(SYNAPSES, high=2), integers(SYNAPSES, high=SIZE - 1)),
        reference=adjoint(loops.synapses, 4, 0, 1),
        dtypes=FLOATS,
        rtol=4.0,
        size=SIZE,
    )
