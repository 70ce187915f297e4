"""Rows for `ember_ml.ops.selective_scan`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tests.conformance.table import FLOATS, Sample, case, real

KEY = "selective_scan.selective_scan"


def scan(u: Any, dt: Any, a: Any, b: Any, c: Any, d: Any = None) -> Any:
    """Compute step by step."""
    state = np.zeros((u.shape[0], *a.shape))
    y = np.zeros(u.shape)
    for t in range(u.shape[1]):
        step = dt[:, t, :, None]
        state = np.exp(step * a) * state + step * u[:, t, :, None] * b[:, t, None]
        y[:, t] = (state * c[:, t, None]).sum(-1)
    return y if d is None else y + d * u


def steps(*shape: int) -> Sample:
    return real(*shape, low=0.1, high=0.9)


def rates(*shape: int) -> Sample:
    return real(*shape, low=-2.0, high=-0.1)


def unit(*shape: int, **options: Any) -> Sample:
    return real(*shape, low=-1.0, high=1.0, **options)


def row(batch: int, time: int, channels: int, states: int, skip: bool = True) -> None:
    sequence, narrow = (batch, time, channels), (batch, time, states)
    extra = (unit(channels),) if skip else ()
    operands = unit(*sequence), steps(*sequence), rates(channels, states), unit(*narrow)
    case(KEY, *operands, unit(*narrow), *extra, reference=scan, rtol=4.0)


def scan_from(u: Any, dt: Any, a: Any, b: Any, c: Any, d: Any, state: Any) -> Any:
    """Compute step by step from a state."""
    y = np.zeros(u.shape)
    for t in range(u.shape[1]):
        step = dt[:, t, :, None]
        state = np.exp(step * a) * state + step * u[:, t, :, None] * b[:, t, None]
        y[:, t] = (state * c[:, t, None]).sum(-1)
    return y + d * u, state


for batch, time in [(2, 5), (1, 1), (2, 0), (1, 33)]:
    case(
        f"{KEY}_with_state",
        *(unit(batch, time, 3), steps(batch, time, 3), rates(3, 2)),
        *(unit(batch, time, 2), unit(batch, time, 2), unit(3), unit(batch, 3, 2)),
        reference=scan_from,
        rtol=4.0,
    )

row(2, 5, 3, 2)
row(1, 1, 2, 4)
row(2, 9, 2, 1, skip=False)
row(2, 0, 3, 2)
row(0, 4, 3, 2)
row(1, 33, 2, 2)

CHUNK = 16
SCAN = "selective_scan._checkpointed_scan"


def checkpointed(u: Any, dt: Any, a: Any, b: Any, c: Any, d: Any = 0.0, state: Any = None) -> Any:
    """Compute step by step, with the states after each chunk."""
    state = np.zeros((u.shape[0], *a.shape)) if state is None else np.swapaxes(state, 1, 2)
    saved = np.zeros((u.shape[0], u.shape[1] // CHUNK, *a.shape))
    outputs = []
    for t in range(u.shape[1]):
        part = slice(t, t + 1)
        operands = (u[:, part], dt[:, part], a, b[:, part], c[:, part])
        y, state = scan_from(*operands, np.asarray(d), state)
        outputs.append(y)
        if t % CHUNK == CHUNK - 1:
            saved[:, t // CHUNK] = state
    return np.concatenate(outputs, 1), np.swapaxes(state, 1, 2), np.swapaxes(saved, 2, 3)


def scan_adjoint(u: Any, dt: Any, a: Any, b: Any, c: Any, *rest: Any) -> Any:
    """Compute by torch's autograd of a loop; the saved states are not needed."""
    _, g, g_last, d, state = (torch.tensor(x) for x in rest)
    leaves = [torch.tensor(x).requires_grad_() for x in (u, dt, a, b, c)]
    leaves += [d.requires_grad_(), state.requires_grad_()]
    u, dt, a, b, c, d, h = leaves
    outputs = []
    for t in range(u.shape[1]):
        step = dt[:, t, None]
        h = torch.exp(step * a.mT) * h + step * u[:, t, None] * b[:, t, :, None]
        outputs.append((h * c[:, t, :, None]).sum(1) + d * u[:, t])
    grads = torch.autograd.grad([torch.stack(outputs, 1), h], leaves, [g, g_last])
    return tuple(x.numpy() for x in grads)


for batch, time, dtypes in [(2, 5, FLOATS), (1, 33, ("float32",))]:
    sequence, narrow = (batch, time, 3), (batch, time, 2)
    operands = (unit(*sequence), steps(*sequence), rates(3, 2), unit(*narrow), unit(*narrow))
    extra = (unit(3), unit(batch, 2, 3))
    case(SCAN, *operands, *extra, reference=checkpointed, rtol=4.0, dtypes=dtypes)
case(
    f"{SCAN}_adjoint",
    *(unit(2, 5, 3), steps(2, 5, 3), rates(3, 2), unit(2, 5, 2), unit(2, 5, 2), unit(2, 0, 2, 3)),
    *(unit(2, 5, 3), unit(2, 2, 3), unit(3), unit(2, 2, 3)),
    reference=scan_adjoint,
    rtol=8.0,
    dtypes=FLOATS,
)
