"""Rows for `ember_ml.ops.selective_scan`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.table import Sample, case, real

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
