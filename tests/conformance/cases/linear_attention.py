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


def recurrence(v: Any, k: Any, a: Any, q: Any, w: Any, decay: Any, state: Any = None) -> Any:
    """Compute chunk by chunk."""
    state = np.zeros((*v.shape[:2], k.shape[4], v.shape[4])) if state is None else state
    y = np.zeros(v.shape)
    for c in range(v.shape[2]):
        error = v[:, :, c] - k[:, :, c] @ state
        y[:, :, c] = a[:, :, c] @ error + q[:, :, c] @ state
        state = decay[:, :, c] * state + w[:, :, c] @ error
    return y, state


for chunks, first in ((1, False), (3, False), (2, True)):
    lead = (1, 2, chunks)
    parts = [(4, 2), (4, 3), (4, 4), (4, 3), (3, 4)]
    operands = [unit(*lead, *part) for part in parts]
    extra = [unit(1, 2, 3, 2)] if first else []
    case(
        "linear_attention.delta_recurrence",
        *operands,
        real(*lead, 1, 1, low=0.1, high=0.9),
        *extra,
        reference=recurrence,
        dtypes=WIDE,
        rtol=8.0,
    )
