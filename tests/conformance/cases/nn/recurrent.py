"""Rows for `ember_ml.ops.nn.recurrent`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.table import FLOATS, Sample, case, integers, positive, real


def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def lstm(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any = 0.0, d: Any = 0.0) -> Any:
    """Compute step by step."""
    states = np.zeros((*x.shape[:2], h.shape[1]))
    for at in range(x.shape[1]):
        i, f, g, o = np.split(x[:, at] @ w.T + b + h @ u.T + d, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        states[:, at] = h = sigmoid(o) * np.tanh(c)
    return states, h, c


def gru(x: Any, h: Any, w: Any, u: Any, b: Any = 0.0, d: Any = 0.0) -> Any:
    """Compute step by step."""
    states = np.zeros((*x.shape[:2], h.shape[1]))
    for at in range(x.shape[1]):
        r, z, n = np.split(x[:, at] @ w.T + b, 3, axis=1)
        hr, hz, hn = np.split(h @ u.T + d, 3, axis=1)
        n = np.tanh(n + sigmoid(r + hr) * hn)
        z = sigmoid(z + hz)
        states[:, at] = h = (1 - z) * n + z * h
    return states, h


def closed_form(
    x: Any, h: Any, u: Any, w: Any = None, b: Any = None, spans: Any = None, gated: bool = True
) -> Any:
    """Compute step by step."""
    states = np.zeros((*x.shape[:2], h.shape[1]))
    for at in range(x.shape[1]):
        z = x[:, at] + h @ u.T
        if w is not None:
            z = np.tanh(z) @ w.T + (0.0 if b is None else b)
        f1, f2, *gates = np.split(z, 3 if spans is None else 4, axis=1)
        t = sigmoid(gates[0] if spans is None else gates[0] * spans[:, at] + gates[1])
        states[:, at] = h = np.tanh(f1) * (1 - t if gated else 1) + t * np.tanh(f2)
    return states


def liquid(x: Any, v: Any, c: Any, a: Any, b: Any, w: Any) -> Any:
    """Compute step by step."""
    states = np.zeros((*x.shape[:2], v.shape[1]))
    for at in range(x.shape[1]):
        current, conductance = np.split(x[:, at] + sigmoid(v @ a.T + b) @ w.T, 2, axis=1)
        states[:, at] = v = (c * v + current) / (c + conductance)
    return states


def synapses(v: Any, a: Any, b: Any, w: Any, sources: Any, destinations: Any, size: int) -> Any:
    """Compute one synapse at a time."""
    out = np.zeros((*v.shape[:-1], len(w), size))
    for e, (src, dest) in enumerate(zip(sources, destinations, strict=True)):
        out[..., dest] += w[:, e] * sigmoid(v[..., src, None] * a[e] + b[e])
    return out.reshape(*v.shape[:-1], len(w) * size)


def small(*shape: int) -> Sample:
    return real(*shape, low=-1.0, high=1.0)


def tame(*shape: int) -> Sample:
    return positive(*shape, low=0.1, high=1.0)


for batch, time, features, size in ((2, 4, 3, 2), (1, 1, 1, 1), (2, 9, 2, 3), (3, 0, 2, 2)):
    x, h = small(batch, time, features), small(batch, size)
    for gates, reference, key, state in ((4, lstm, "lstm", (h, h)), (3, gru, "gru", (h,))):
        weights = small(gates * size, features), small(gates * size, size)
        biases = small(gates * size), small(gates * size)
        case(
            f"nn.recurrent.{key}", x, *state, *weights, *biases, reference=reference, dtypes=FLOATS
        )
        case(f"nn.recurrent.{key}", x, *state, *weights, reference=reference, dtypes=FLOATS)
    key, inner = "nn.recurrent.closed_form", 5
    entries, recurrent = small(batch, time, inner), small(inner, size)
    heads = small(3 * size, inner), small(3 * size)
    case(key, entries, h, recurrent, *heads, reference=closed_form, dtypes=FLOATS)
    case(
        key,
        entries,
        h,
        recurrent,
        small(4 * size, inner),
        small(4 * size),
        tame(batch, time, 1),
        reference=closed_form,
        dtypes=FLOATS,
    )
    case(
        key,
        small(batch, time, 4 * size),
        h,
        small(4 * size, size),
        None,
        None,
        tame(1, time, 1),
        False,
        reference=closed_form,
        dtypes=FLOATS,
    )
    case(
        key,
        small(batch, time, 3 * size),
        h,
        small(3 * size, size),
        reference=closed_form,
        dtypes=FLOATS,
    )
    case(
        "nn.recurrent.liquid",
        tame(batch, time, 2 * size),
        h,
        tame(size),
        small(4, size),
        small(4),
        tame(2 * size, 4),
        reference=liquid,
        dtypes=FLOATS,
    )

for lead, neurons, size, kinds, count in (
    ((2, 3), 3, 2, 2, 5),
    ((), 1, 1, 1, 1),
    ((0,), 2, 3, 2, 4),
    ((90, 2), 5, 4, 2, 400),
):
    case(
        "nn.recurrent.synapses",
        small(*lead, neurons),
        small(count),
        small(count),
        small(kinds, count),
        integers(count, high=neurons - 1),
        integers(count, high=size - 1),
        size,
        reference=synapses,
        dtypes=FLOATS,
    )
