"""Recurrences step by step in torch, the references of the C kernels, and operands for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch


class Case(NamedTuple):
    """An op, its operands for a batch and a length, and its reference."""

    op: str
    operands: Callable[[np.random.Generator, int, int], list[Any]]
    reference: Callable[..., Any]
    options: dict[str, Any] = {}  # noqa: RUF012
    backends: tuple[str, ...] = ("numpy", "torch")
    exact: bool = False
    """Whether the reference uses the dtype of the operands, since spikes depend on rounding."""


def linear(a: Any, b: Any, h0: Any = None, axis: int = 1, reverse: bool = False) -> Any:
    a, b = torch.broadcast_tensors(a, b)
    state = torch.zeros_like(b.select(axis, 0)) if h0 is None else h0 + 0 * b.select(axis, 0)
    states = []
    for at in range(b.shape[axis])[:: -1 if reverse else 1]:
        state = a.select(axis, at) * state + b.select(axis, at)
        states.append(state)
    return torch.stack(states[:: -1 if reverse else 1], axis), state


def selective(u: Any, dt: Any, a: Any, b: Any, c: Any, d: Any = None, state: Any = None) -> Any:
    h = torch.zeros(u.shape[0], *a.shape, dtype=u.dtype) if state is None else state
    ys = []
    for t in range(u.shape[1]):
        step = dt[:, t, :, None]
        h = torch.exp(step * a) * h + step * u[:, t, :, None] * b[:, t, None]
        ys.append((h * c[:, t, None]).sum(-1))
    y = torch.stack(ys, 1)
    y = y if d is None else y + d * u
    return y if state is None else (y, h)


def attention(
    q: Any, k: Any, v: Any, decay: Any = None, bonus: Any = None, state: Any = None
) -> Any:
    s = torch.zeros(*q.shape[:2], q.shape[3], v.shape[3], dtype=q.dtype) if state is None else state
    ys = []
    for t in range(q.shape[2]):
        update, before = k[:, :, t, :, None] * v[:, :, t, None], s
        if decay is not None:
            s = decay[:, :, t].clamp(min=-20.0).exp()[..., None] * s
        s = s + update
        read = s if bonus is None else before + bonus[..., None] * update
        ys.append((q[:, :, t, :, None] * read).sum(2))
    y = torch.stack(ys, 2)
    return y if state is None else (y, s)


def delta_rule(q: Any, k: Any, v: Any, rate: Any, decay: Any = None, state: Any = None) -> Any:
    s = torch.zeros(*q.shape[:2], q.shape[3], v.shape[3], dtype=q.dtype) if state is None else state
    ys = []
    for t in range(q.shape[2]):
        if decay is not None:
            s = decay[:, :, t].clamp(min=-20.0).exp()[..., None] * s
        error = v[:, :, t] - (k[:, :, t, :, None] * s).sum(2)
        s = s + (rate * k)[:, :, t, :, None] * error[:, :, None]
        ys.append((q[:, :, t, :, None] * s).sum(2))
    y = torch.stack(ys, 2)
    return y if state is None else (y, s)


def surrogate(u: Any, kind: str, k: float) -> Any:
    """Return spikes with a surrogate derivative."""
    smooth = {
        "fast_sigmoid": lambda: u / (1 + k * u.abs()),
        "atan": lambda: torch.atan(0.5 * math.pi * k * u) / math.pi,
        "sigmoid": lambda: torch.sigmoid(k * u),
        "triangle": lambda: k * torch.where(u.abs() < 1, u - 0.5 * u * u.abs(), 0 * u),
        "straight_through": lambda: k * u,
    }[kind]()
    return (u > 0).to(u.dtype) + smooth - smooth.detach()


def spiking(
    x: Any,
    state: Any,
    beta: Any,
    threshold: Any,
    alpha: Any = None,
    rho: Any = None,
    strength: Any = None,
    taps: Any = None,
    history: Any = None,
    mask: Any = None,
    reset: str = "soft",
    surrogate_name: str = "atan",
    slope: float = 2.0,
) -> Any:
    rows = list(state.unbind(1))
    v = rows.pop(0)
    current = rows.pop(0) if alpha is not None else None
    adaptation = rows.pop(0) if rho is not None else None
    spikes, voltages = [], []
    for t in range(x.shape[1]):
        real = torch.ones(len(x), 1, dtype=torch.bool) if mask is None else mask[:, t, None]
        drive = x[:, t]
        if alpha is not None:
            current = torch.where(real, alpha * current + drive, current)
            drive = current
        v = torch.where(real, beta * v + drive, v)
        theta = threshold if rho is None else threshold + strength * adaptation
        z = torch.where(real, surrogate(v - theta, surrogate_name, slope), 0 * v)
        spikes.append(z)
        voltages.append(v)
        fired = z.detach()
        v = v - theta * fired if reset == "soft" else v * (1 - fired) if reset == "hard" else v
        if rho is not None:
            adaptation = torch.where(real, rho * adaptation + z, adaptation)
    rows = [row for row in (v, current, adaptation) if row is not None]
    return torch.stack(spikes, 1), torch.stack(voltages, 1), torch.stack(rows, 1)


def lstm(x: Any, h: Any, c: Any, w: Any, r: Any, b: Any = None, d: Any = None) -> Any:
    ys = []
    for t in range(x.shape[1]):
        z = x[:, t] @ w.T + h @ r.T + (0 if b is None else b) + (0 if d is None else d)
        i, f, g, o = z.chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        ys.append(h)
    return torch.stack(ys, 1), h, c


def gru(x: Any, h: Any, w: Any, r: Any, b: Any = None, d: Any = None) -> Any:
    ys = []
    for t in range(x.shape[1]):
        xr, xz, xn = (x[:, t] @ w.T + (0 if b is None else b)).chunk(3, -1)
        hr, hz, hn = (h @ r.T + (0 if d is None else d)).chunk(3, -1)
        z, n = (xz + hz).sigmoid(), (xn + (xr + hr).sigmoid() * hn).tanh()
        h = (1 - z) * n + z * h
        ys.append(h)
    return torch.stack(ys, 1), h


def closed_form(
    x: Any, h: Any, r: Any, w: Any = None, b: Any = None, spans: Any = None, gated: bool = True
) -> Any:
    size, ys = h.shape[1], []
    for t in range(x.shape[1]):
        z = x[:, t] + h @ r.T
        z = z if w is None else z.tanh() @ w.T + (0 if b is None else b)
        f1, f2 = z[:, :size].tanh(), z[:, size : 2 * size].tanh()
        gate = z[:, 2 * size : 3 * size]
        gate = (gate if spans is None else gate * spans[:, t] + z[:, 3 * size :]).sigmoid()
        h = f1 * (1 - gate) + gate * f2 if gated else f1 + gate * f2
        ys.append(h)
    return torch.stack(ys, 1)


def liquid(x: Any, v: Any, c: Any, a: Any, b: Any, w: Any) -> Any:
    size, ys = v.shape[1], []
    for t in range(x.shape[1]):
        sums = x[:, t] + (v @ a.T + b).sigmoid() @ w.T
        v = (c * v + sums[:, :size]) / (c + sums[:, size:])
        ys.append(v)
    return torch.stack(ys, 1)


def synapses(v: Any, a: Any, b: Any, w: Any, sources: Any, targets: Any, size: int) -> Any:
    s = (v[..., sources] * a + b).sigmoid()
    out = [torch.zeros(*v.shape[:-1], size, dtype=v.dtype) for _ in w]
    return torch.cat(
        [o.index_add(-1, targets, s * each) for o, each in zip(out, w, strict=True)], -1
    )


def _some(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return scale * rng.standard_normal(shape)


def _unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.uniform(0.1, 0.95, shape)


def _selective(rng: Any, batch: int, time: int) -> list[Any]:
    sequence, narrow = (batch, time, 5), (batch, time, 3)
    return [
        _some(rng, *sequence),
        _unit(rng, *sequence),
        -_unit(rng, 5, 3),
        *(_some(rng, *narrow), _some(rng, *narrow), _some(rng, 5)),
    ]


def _wide_selective(rng: Any, batch: int, time: int) -> list[Any]:
    """More channels than a block of the kernel has."""
    sequence, narrow = (batch, time, 150), (batch, time, 2)
    return [
        _some(rng, *sequence),
        _unit(rng, *sequence),
        -_unit(rng, 150, 2),
        *(_some(rng, *narrow), _some(rng, *narrow)),
    ]


def _attention(
    decays: str = "", bonus: bool = False, sizes: tuple[int, int] = (6, 11)
) -> Callable[..., list[Any]]:
    """Return operands of linear attention; `decays` names the axes: b(atch), h(eads), t, k(eys)."""

    def operands(rng: Any, batch: int, time: int) -> list[Any]:
        lead, (keys, values) = (batch, 2, time), sizes
        arrays = [_some(rng, *lead, n) for n in (keys, keys, values)]
        lengths = {"b": batch, "h": 2, "t": time, "k": keys, "1": 1}
        if decays:
            arrays.append(-_unit(rng, *(lengths[axis] for axis in decays)))
        return [*arrays, _some(rng, 2, keys)] if bonus else arrays

    return operands


def _delta(gated: bool, sizes: tuple[int, int] = (6, 11)) -> Callable[..., list[Any]]:
    def operands(rng: Any, batch: int, time: int) -> list[Any]:
        query, key, value = _attention(sizes=sizes)(rng, batch, time)
        key = key / np.linalg.norm(key, axis=-1, keepdims=True)
        lead = (batch, 2, time, 1)
        return [query, key, value, _unit(rng, *lead), *([-_unit(rng, *lead)] if gated else [])]

    return operands


def _spiking(rows: int, neurons: int = 9, masked: bool = False) -> Callable[..., list[Any]]:
    def operands(rng: Any, batch: int, time: int) -> list[Any]:
        x = 0.2 + _some(rng, batch, time, neurons)
        arrays = [x, _some(rng, batch, rows, neurons), _unit(rng, neurons), _unit(rng, neurons)]
        alpha = [_unit(rng, neurons)] if rows != 1 else [None]
        rho = [_unit(rng, neurons), _unit(rng, neurons)] if rows == 3 else [None, None]
        mask = np.arange(time) < max(1, time - 3) if masked else None
        mask = None if mask is None else np.broadcast_to(mask, (batch, time)).copy()
        return [*arrays, *alpha, *rho, None, None, mask]

    return operands


def _gates(gates: int, states: int, biases: int = 2) -> Callable[..., list[Any]]:
    def operands(rng: Any, batch: int, time: int) -> list[Any]:
        hidden, features = 7, 4
        weights = [_some(rng, gates * hidden, n, scale=0.4) for n in (features, hidden)]
        extra = [_some(rng, gates * hidden) for _ in range(biases)]
        first = [_some(rng, batch, hidden) for _ in range(states)]
        return [_some(rng, batch, time, features), *first, *weights, *extra]

    return operands


def _closed_form(backbone: bool, spans: int | None) -> Callable[..., list[Any]]:
    def operands(rng: Any, batch: int, time: int) -> list[Any]:
        hidden, heads = 6, 18 if spans is None else 24
        inner = 11 if backbone else heads
        arrays = [_some(rng, batch, time, inner), _some(rng, batch, hidden)]
        arrays.append(_some(rng, inner, hidden, scale=0.4))
        arrays += (
            [_some(rng, heads, inner, scale=0.4), _some(rng, heads)] if backbone else [None] * 2
        )
        return [*arrays, None if spans is None else _unit(rng, batch if spans else 1, time, 1)]

    return operands


def _liquid(rng: Any, batch: int, time: int) -> list[Any]:
    size, count = 5, 70
    return [
        *(np.abs(_some(rng, batch, time, 2 * size)), _some(rng, batch, size), _unit(rng, size)),
        *(_some(rng, count, size), _some(rng, count), _unit(rng, 2 * size, count) / 20),
    ]


def _synapses(rng: Any, batch: int, time: int) -> list[Any]:
    count = 23
    arrays = [
        _some(rng, batch, time, 6),
        _some(rng, count),
        _some(rng, count),
        _some(rng, 2, count),
    ]
    return [*arrays, rng.integers(0, 6, count), rng.integers(0, 4, count)]


def _linear(*shapes: str) -> Callable[..., list[Any]]:
    """Return operands whose shapes name their axes: b(atch), t(ime), 1, or f(eatures)."""

    def operands(rng: Any, batch: int, time: int) -> list[Any]:
        sizes = {"b": batch, "t": time, "1": 1, "f": 9, "w": 1100, "s": 3}
        full = [tuple(sizes[axis] for axis in shape) for shape in shapes]
        return [_unit(rng, *full[0]), *[_some(rng, *shape) for shape in full[1:]]]

    return operands


CASES = {
    "linear": Case("linear_recurrence", _linear("btf", "btf", "bf"), linear),
    "linear reverse": Case(
        "linear_recurrence", _linear("bt1", "btf", "f"), linear, {"reverse": True}
    ),
    "linear time first": Case("linear_recurrence", _linear("tbw", "tbw"), linear, {"axis": 0}),
    "linear time last": Case(
        "linear_recurrence", _linear("bst", "bst", "bs"), linear, {"axis": 2, "reverse": True}
    ),
    "linear broadcast": Case("linear_recurrence", _linear("f", "bt1", "1f"), linear),
    "selective": Case("selective_scan", _selective, selective),
    "selective wide": Case("selective_scan", _wide_selective, selective),
    "selective from a state": Case(
        "selective_scan_with_state",
        lambda rng, batch, time: [*_selective(rng, batch, time), _some(rng, batch, 5, 3)],
        selective,
    ),
    "attention": Case("gated_linear_attention", _attention(), attention),
    "attention, features": Case("gated_linear_attention", _attention("bhtk"), attention),
    "attention, heads": Case("gated_linear_attention", _attention("bht1"), attention),
    "attention, shared decays": Case("gated_linear_attention", _attention("1ht1"), attention),
    "attention, shared features": Case("gated_linear_attention", _attention("1htk"), attention),
    "attention, bonus": Case("gated_linear_attention", _attention("bhtk", bonus=True), attention),
    "attention, heads, bonus": Case(
        "gated_linear_attention", _attention("bht1", bonus=True), attention
    ),
    "attention, wide": Case(
        "gated_linear_attention", _attention("bhtk", sizes=(37, 71)), attention
    ),
    "delta rule": Case("gated_delta_rule", _delta(gated=False), delta_rule),
    "delta rule, gated": Case("gated_delta_rule", _delta(gated=True), delta_rule),
    "delta rule, wide": Case("gated_delta_rule", _delta(True, (71, 37)), delta_rule),
    "lif": Case("spiking_scan", _spiking(1), spiking, exact=True),
    "lif wide, hard": Case(
        "spiking_scan",
        _spiking(1, neurons=300),
        spiking,
        {"reset": "hard", "surrogate": "fast_sigmoid"},
        exact=True,
    ),
    "synaptic, masked": Case(
        "spiking_scan", _spiking(2, masked=True), spiking, {"surrogate": "sigmoid"}, exact=True
    ),
    "adaptive, masked, hard": Case(
        "spiking_scan",
        _spiking(3, masked=True),
        spiking,
        {"reset": "hard", "surrogate": "triangle"},
        exact=True,
    ),
    "adaptive": Case("spiking_scan", _spiking(3), spiking, {"slope": 1.0}, exact=True),
    "adaptive, no reset": Case(
        "spiking_scan",
        _spiking(3),
        spiking,
        {"reset": "none", "surrogate": "straight_through", "slope": 0.1},
        exact=True,
    ),
    "lstm": Case("lstm", _gates(4, 2), lstm),
    "lstm with one bias": Case("lstm", _gates(4, 2, biases=1), lstm),
    "lstm without biases": Case("lstm", _gates(4, 2, biases=0), lstm),
    "gru": Case("gru", _gates(3, 1), gru),
    "gru without biases": Case("gru", _gates(3, 1, biases=0), gru),
    "closed form": Case("closed_form", _closed_form(False, None), closed_form),
    "closed form with timespans": Case("closed_form", _closed_form(False, 1), closed_form),
    "closed form with a backbone": Case("closed_form", _closed_form(True, 0), closed_form),
    "closed form without a gate": Case(
        "closed_form", _closed_form(True, None), closed_form, {"gated": False}
    ),
    "liquid": Case("liquid", _liquid, liquid),
    "synapses": Case("synapses", _synapses, synapses, {"size": 4}),
}
