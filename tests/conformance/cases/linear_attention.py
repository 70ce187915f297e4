"""Rows for `ember_ml.ops.linear_attention`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.table import case, real

WIDE = ("float32", "float64")
KEY = "linear_attention.gated_linear_attention"


def attention(q: Any, k: Any, v: Any, decay: Any = None, bonus: Any = None) -> Any:
    """Compute step by step."""
    state = np.zeros((*q.shape[:2], q.shape[3], v.shape[3]))
    y = np.zeros(v.shape)
    for t in range(q.shape[2]):
        update = k[:, :, t, :, None] * v[:, :, t, None]
        before = state if bonus is None else state + bonus[:, :, None] * update
        if decay is not None:
            state = np.exp(np.maximum(decay[:, :, t], -20.0))[..., None] * state
        state = state + update
        read = state if bonus is None else before
        y[:, :, t] = (q[:, :, t, :, None] * read).sum(2)
    return y


def unit(*shape: int, **options: Any) -> Any:
    return real(*shape, low=-1.0, high=1.0, **options)


def decays(*shape: int) -> Any:
    return real(*shape, low=-1.0, high=0.0)


def row(shape: tuple[int, ...], values: int, *rest: Any) -> None:
    operands = unit(*shape), unit(*shape), unit(*shape[:3], values)
    case(KEY, *operands, *rest, reference=attention, dtypes=WIDE, rtol=8.0)


row((2, 1, 5, 3), 2)
row((1, 2, 5, 3), 2, decays(1, 2, 5, 3))
row((2, 2, 5, 3), 2, decays(1, 2, 5, 1))
row((1, 2, 5, 3), 2, decays(1, 2, 5, 3), unit(2, 3))
row((0, 2, 5, 3), 2)
row((1, 1, 40, 2), 2, decays(1, 1, 40, 2))


def delta_rule(q: Any, k: Any, v: Any, rate: Any, decay: Any = None) -> Any:
    """Compute step by step."""
    state = np.zeros((*q.shape[:2], q.shape[3], v.shape[3]))
    y = np.zeros(v.shape)
    for t in range(q.shape[2]):
        if decay is not None:
            state = np.exp(np.maximum(decay[:, :, t], -20.0))[..., None] * state
        error = v[:, :, t] - (k[:, :, t, :, None] * state).sum(2)
        state = state + (rate * k)[:, :, t, :, None] * error[:, :, None]
        y[:, :, t] = (q[:, :, t, :, None] * state).sum(2)
    return y


for lead, gated in (((2, 1, 5), False), ((1, 2, 5), True), ((1, 1, 40), True), ((0, 1, 5), False)):
    rates = real(*lead, 1, low=0.1, high=0.9)
    case(
        "linear_attention.gated_delta_rule",
        *(unit(*lead, 3), unit(*lead, 3), unit(*lead, 2), rates),
        *((decays(*lead, 1),) if gated else ()),
        reference=delta_rule,
        dtypes=WIDE,
        rtol=16.0,
    )
