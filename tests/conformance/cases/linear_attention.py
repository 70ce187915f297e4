"""Rows for `ember_ml.ops.linear_attention`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

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


ATTEND = "linear_attention._attend"


def steps(q: Any, k: Any, v: Any, decay: Any, rate: Any, bonus: Any, s: Any) -> Any:
    """Compute step by step in torch; the decay, the rate and the bonus may be None."""
    outputs = []
    for t in range(q.shape[2]):
        before = s
        s = s if decay is None else decay[:, :, t].clamp(min=-20.0).exp()[..., None] * s
        write = v[:, :, t]
        if rate is not None:
            write = rate[:, :, t] * (write - (k[:, :, t, :, None] * s).sum(2))
        update = k[:, :, t, :, None] * write[:, :, None]
        s = s + update
        read = s if bonus is None else before + bonus[..., None] * update
        outputs.append((q[:, :, t, :, None] * read).sum(2))
    return torch.stack(outputs, 2), s


def attend(*operands: Any) -> Any:
    """Compute the outputs and the last state."""
    leaves = [None if x is None else torch.tensor(x) for x in operands]
    return tuple(x.numpy() for x in steps(*leaves))


def attend_adjoint(q: Any, k: Any, v: Any, g: Any, g_last: Any, saved: Any, *rest: Any) -> Any:
    """Compute by torch's autograd; the saved values are not needed, and what is None has none."""
    operands = (q, k, v, *rest)
    leaves = [None if x is None else torch.tensor(x).requires_grad_() for x in operands]
    sources = [x for x in leaves if x is not None]
    into = [torch.tensor(x) for x in (g, g_last)]
    grads = iter(torch.autograd.grad(steps(*leaves), sources, into))
    return tuple(None if x is None else next(grads).numpy() for x in leaves)


def near(results: Any, wanted: Any) -> None:
    """Compare results with what is not None of a tuple."""
    for got, want in zip(results, wanted, strict=False):
        if want is not None:
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def first(*shape: int) -> tuple[Any, ...]:
    return unit(*shape, 3), unit(*shape, 3), unit(*shape, 2)


for lead in ((1, 2, 5), (1, 1, 20)):
    start, rates, own = unit(*lead[:2], 3, 2), real(*lead, 1, low=0.1, high=0.9), unit(lead[1], 3)
    for rest in (
        (decays(*lead, 3), None, own, start),
        (decays(*lead, 1), None, None, start),
        (None, rates, None, start),
    ):
        case(
            ATTEND,
            *(*first(*lead), *rest),
            check=lambda results, *values: near(results, attend(*values)),
            dtypes=WIDE,
        )
        case(
            f"{ATTEND}_adjoint",
            *(*first(*lead), unit(*lead, 2), unit(*lead[:2], 3, 2), unit(*lead[:2], 0, 2), *rest),
            check=lambda results, *values: near(results, attend_adjoint(*values)),
            dtypes=WIDE,
        )
