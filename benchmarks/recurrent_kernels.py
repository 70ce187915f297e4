"""Rows of `benchmarks/kernels.py` for recurrences.

These are scans, linear attention, spiking neurons, recurrent cells and Mamba.
Each row is a function that returns a call with Ember ML, the same with a peer, and the peer's name.
Scans are measured with the gradients of all operands, cells and models with those of all
parameters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ncps.torch
import ncps.wirings
import numpy as np
import snntorch
import torch
from snntorch import surrogate

from ember_ml import GradientTape, nn, ops, use_backend
from ember_ml.nn import models, tensor, wirings
from ember_ml.nn.layers.sequence_mixing import recurrent
from ember_ml.training import Trainer

Call = Callable[[], object]
Row = tuple[Call, Call, str]


def _uniform(low: float, high: float, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(low, high, shape).astype(np.float32)


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def ember_call(backend: str, function: Callable[..., Any], *arrays: np.ndarray) -> Call:
    """Return the first result of a function and the gradients of its operands, on a backend."""
    with use_backend(backend):
        operands = [tensor.array(x) for x in arrays]
        g = tensor.array(_normal(*function(*operands)[0].shape))

    def call() -> object:
        with GradientTape() as tape:
            tape.watch(operands)
            out = function(*operands)[0]
        return tape.gradient(out, operands, g)

    return call


def torch_call(function: Callable[..., torch.Tensor], *arrays: np.ndarray) -> Call:
    """Return a function in torch and the gradients of its operands."""
    leaves = [torch.from_numpy(x).requires_grad_() for x in arrays]
    g = torch.from_numpy(_normal(*function(*leaves).shape))
    return lambda: torch.autograd.grad(function(*leaves), leaves, g)


def _linear_loop(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    h, states = torch.zeros_like(b[:, 0]), []
    for factor, entry in zip(a.unbind(1), b.unbind(1), strict=True):
        h = factor * h + entry
        states.append(h)
    return torch.stack(states, 1)


def _selective_loop(u: Any, dt: Any, a: Any, b: Any, c: Any, d: Any) -> torch.Tensor:
    h, outputs = torch.zeros(u.shape[0], *a.shape), []
    for x, step, write, read in zip(*(each.unbind(1) for each in (u, dt, b, c)), strict=True):
        step = step.unsqueeze(2)
        h = torch.exp(step * a) * h + step * x.unsqueeze(2) * write.unsqueeze(1)
        outputs.append((h * read.unsqueeze(1)).sum(2))
    return torch.stack(outputs, 1) + d * u


def linear_recurrence(backend: str) -> Row:
    """Return a linear recurrence, and a loop in torch."""
    shape = (32, 1024, 64)
    arrays = _uniform(0.5, 1.0, *shape), _normal(*shape)
    call = ember_call(backend, ops.linear_recurrence, *arrays)
    return call, torch_call(_linear_loop, *arrays), "loop in torch"


def selective_scan(backend: str) -> Row:
    """Return a selective scan, and a loop in torch."""
    batch, time, channels, states = 64, 64, 128, 4
    sequence, narrow = (batch, time, channels), (batch, time, states)
    arrays = (
        *(_normal(*sequence), _uniform(0.01, 0.1, *sequence), -_uniform(0.5, 4, channels, states)),
        *(_normal(*narrow), _normal(*narrow), _normal(channels)),
    )
    call = ember_call(backend, lambda *x: (ops.selective_scan(*x),), *arrays)
    return call, torch_call(_selective_loop, *arrays), "loop in torch"


def _attention_loop(q: Any, k: Any, v: Any, decay: Any) -> torch.Tensor:
    state, outputs = torch.zeros(*q.shape[:2], q.shape[3], v.shape[3]), []
    factors = decay.exp().unsqueeze(4)
    for read, key, value, factor in zip(*(x.unbind(2) for x in (q, k, v, factors)), strict=True):
        state = factor * state + key.unsqueeze(3) * value.unsqueeze(2)
        outputs.append((read.unsqueeze(2) @ state).squeeze(2))
    return torch.stack(outputs, 2)


def _delta_loop(q: Any, k: Any, v: Any, rate: Any, decay: Any) -> torch.Tensor:
    state, outputs = torch.zeros(*q.shape[:2], q.shape[3], v.shape[3]), []
    series = (q, k, v, rate, decay.exp().unsqueeze(4))
    for read, key, value, step, factor in zip(*(x.unbind(2) for x in series), strict=True):
        state = factor * state
        error = value - (key.unsqueeze(2) @ state).squeeze(2)
        state = state + (step * key).unsqueeze(3) * error.unsqueeze(2)
        outputs.append((read.unsqueeze(2) @ state).squeeze(2))
    return torch.stack(outputs, 2)


def linear_attention(backend: str, batch: int, heads: int, time: int, features: int) -> Row:
    """Return linear attention with a decay per key feature, and a loop in torch."""
    shape = (batch, heads, time, features)
    arrays = _normal(*shape), _uniform(-1, 1, *shape), _normal(*shape), -_uniform(0.01, 0.2, *shape)
    call = ember_call(backend, lambda *x: (ops.gated_linear_attention(*x),), *arrays)
    return call, torch_call(_attention_loop, *arrays), "loop in torch"


def delta_rule(backend: str, batch: int, heads: int, time: int, features: int) -> Row:
    """Return the gated delta rule, and a loop in torch."""
    lead = (batch, heads, time)
    key = _uniform(-1, 1, *lead, features)
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    arrays = (
        *(_normal(*lead, features), key, _normal(*lead, features)),
        *(_uniform(0.1, 0.9, *lead, 1), -_uniform(0.01, 0.2, *lead, 1)),
    )
    call = ember_call(backend, lambda *x: (ops.gated_delta_rule(*x),), *arrays)
    return call, torch_call(_delta_loop, *arrays), "loop in torch"


def spiking_scan(backend: str) -> Row:
    """Return leaky integrate-and-fire neurons, and snnTorch's."""
    batch, time, neurons = 32, 256, 64
    x = 0.2 + 0.5 * _normal(batch, time, neurons)
    with use_backend(backend):
        ones = tensor.array(np.ones(neurons, np.float32))
        state = tensor.array(np.zeros((batch, 1, neurons), np.float32))
    leaky = snntorch.Leaky(beta=0.9, spike_grad=surrogate.atan(alpha=2.0))

    def peer(x: torch.Tensor) -> torch.Tensor:
        memory, spikes = leaky.init_leaky(), []
        for entry in x.unbind(1):
            spike, memory = leaky(entry, memory)
            spikes.append(spike)
        return torch.stack(spikes, 1)

    call = ember_call(backend, lambda x: ops.spiking_scan(x, state, 0.9 * ones, ones), x)
    return call, torch_call(peer, x), "snnTorch"


def cell(
    backend: str, layer: Callable[[], nn.Module], peer: Callable[[], torch.nn.Module], name: str
) -> Row:
    """Return the training step of a recurrent layer on a backend, and that of a peer in torch."""
    x = _normal(32, 64, 16)
    with use_backend(backend):
        built, entry = layer(), tensor.array(x)
        step = nn.value_and_grad(built, lambda: ops.sum(built(entry)))
    module, given = peer(), torch.from_numpy(x)
    parameters = [p for p in module.parameters() if p.requires_grad]

    def peer_step() -> object:
        total = module(given)[0].sum()
        return torch.autograd.grad(total, parameters, allow_unused=True)

    return step, peer_step, name


def mamba(backend: str, length: int) -> Row:
    """Return a training step of Mamba on 4096 tokens, and one of attention."""
    tokens = np.random.default_rng(0).integers(0, 16, (4096 // length, length))

    def step(mixer: str) -> Call:
        with use_backend(backend):
            model = models.LanguageModel(f"({mixer} swiglu)x2", vocab_size=16, hidden_size=64)
            trainer = Trainer(model, "cross_entropy", optimizer="adamw", progress=False)
            batch = tensor.array(tokens), tensor.array(tokens)
        return lambda: trainer.train_step(batch)

    return step("mamba"), step("attention"), "attention"


CELLS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.nn.Module], str]] = {
    "LTC, AutoNCP(64, 4)": (
        lambda: recurrent.LTC(16, wirings.AutoNCP(64, 4)),
        lambda: ncps.torch.LTC(16, ncps.wirings.AutoNCP(64, 4)),
        "ncps",
    ),
    "CfC(64)": (lambda: recurrent.CfC(16, 64), lambda: ncps.torch.CfC(16, 64), "ncps"),
    "LSTM(64)": (
        lambda: recurrent.LSTM(16, 64),
        lambda: torch.nn.LSTM(16, 64, batch_first=True),
        "torch.nn",
    ),
    "GRU(64)": (
        lambda: recurrent.GRU(16, 64),
        lambda: torch.nn.GRU(16, 64, batch_first=True),
        "torch.nn",
    ),
}
_SIZES = ((64, 4, 64, 16), (8, 8, 512, 64))
_MATRIX_STATES = {"gated_linear_attention": linear_attention, "gated_delta_rule": delta_rule}

ROWS: dict[str, Callable[[], Row]] = {
    **{
        f"{backend} {name} {size}": functools.partial(make, backend, *size)
        for name, make in _MATRIX_STATES.items()
        for size in _SIZES
        for backend in ("torch", "numpy")
    },
    "torch linear_recurrence (32, 1024, 64)": lambda: linear_recurrence("torch"),
    "numpy linear_recurrence (32, 1024, 64)": lambda: linear_recurrence("numpy"),
    "torch selective_scan (64, 64, 128, 4)": lambda: selective_scan("torch"),
    "numpy selective_scan (64, 64, 128, 4)": lambda: selective_scan("numpy"),
    "torch spiking_scan (32, 256, 64)": lambda: spiking_scan("torch"),
    "numpy spiking_scan (32, 256, 64)": lambda: spiking_scan("numpy"),
    **{
        f"{backend} {title}": functools.partial(cell, backend, *parts)
        for title, parts in CELLS.items()
        for backend in ("torch", "numpy")
    },
    **{
        f"{backend} Mamba's training step, length {length}": functools.partial(
            mamba, backend, length
        )
        for backend in ("torch", "numpy")
        for length in (64, 512, 2048)
    },
}
