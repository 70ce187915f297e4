"""A training step of each sequence mixer in MAD's model, on torch, one thread, in one run.

The model is (mixer, swiglu, mixer, swiglu) at width 128, batch 128 x 127 tokens, AdamW. Each is
compared with a hand-written PyTorch model with multi-head attention, timed in turns with it. Times
are CPU seconds, best of a few. Figures of MAD-Lab on a CPU (measured once, separately):
mh-attention 1.62 s, hyena 4.64 s, GLA 3.08 s, mamba 31.6 s.

    python benchmarks/primitives.py [mixer ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn as tnn
from torch.nn import functional as F

import ember_ml as ember
from ember_ml import nn, registry
from ember_ml.nn import layers
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer

BATCH, LENGTH, DIM, HEADS, VOCABULARY = 128, 127, 128, 16, 16
GOALS = {
    "mh-attention": 1.05,
    "hyena": 1.5,
    "mh-hyena": None,
    "linear-attention": 1.5,
    "gated-linear-attention": 1.5,
    "mamba": 0.7,
    "rwkv5-time-mixer": 2.0,
    "rwkv6-time-mixer": 2.0,
}
"""Mixer -> maximum time of a step, as a multiple of the hand-written attention model's."""


class Model(nn.Module):
    """Pre-norm residual layers."""

    def __init__(self, mixer: str) -> None:
        self.embedding = layers.Embedding(VOCABULARY, DIM)
        names = [mixer, "swiglu", mixer, "swiglu"]
        self.layers = [registry.create(f"layers/{name}", features=DIM) for name in names]
        self.norms = [layers.RMSNorm(DIM) for _ in range(5)]
        self.head = layers.Dense(DIM, VOCABULARY)

    def forward(self, x: Any) -> Any:
        """Return the logits."""
        x = self.embedding(x)
        for norm, layer in zip(self.norms, self.layers, strict=False):
            x = x + layer(norm(x))
        return self.head(self.norms[-1](x))


class TorchAttention(tnn.Module):
    """Causal multi-head attention with rotary positions."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = tnn.Linear(DIM, 3 * DIM), tnn.Linear(DIM, DIM)
        size = DIM // HEADS
        angles = torch.outer(torch.arange(LENGTH), 1e4 ** (-torch.arange(0, size, 2) / size))
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))

    def rotate(self, x: Any) -> Any:
        """Rotate by the positions."""
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, x: Any) -> Any:
        """Return outputs of shape (batch, time, dim)."""
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class TorchSwiGLU(tnn.Module):
    """Gated linear unit."""

    def __init__(self, inner: int = 352) -> None:
        super().__init__()
        self.expand = tnn.Linear(DIM, 2 * inner, bias=False)
        self.reduce = tnn.Linear(inner, DIM, bias=False)

    def forward(self, x: Any) -> Any:
        """Return outputs of shape (batch, time, dim)."""
        gate, value = self.expand(x).chunk(2, -1)
        return self.reduce(F.silu(gate) * value)


class TorchModel(tnn.Module):
    """Hand-written attention model."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = tnn.Embedding(VOCABULARY, DIM)
        parts = [TorchAttention(), TorchSwiGLU(), TorchAttention(), TorchSwiGLU()]
        self.layers = tnn.ModuleList(parts)
        self.norms = tnn.ModuleList(tnn.RMSNorm(DIM) for _ in range(5))
        self.head = tnn.Linear(DIM, VOCABULARY)

    def forward(self, x: Any) -> Any:
        """Return the logits."""
        x = self.embedding(x)
        for norm, layer in zip(self.norms, self.layers, strict=False):
            x = x + layer(norm(x))
        return self.head(self.norms[-1](x))


def torch_step(x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """Return a hand-written training step."""
    model = TorchModel()
    optimizer = torch.optim.AdamW(model.parameters())
    inputs, targets = torch.from_numpy(x), torch.from_numpy(y)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).backward()
        optimizer.step()

    return step


def ember_step(mixer: str, x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """Return the trainer's step."""
    trainer = Trainer(Model(mixer), "cross_entropy", optimizer="adamw", progress=False)
    batch = array(x), array(y)
    return lambda: trainer.train_step(batch)


def race(contestants: dict[str, Callable[[], Any]], repeats: int = 4) -> dict[str, float]:
    """Return the best CPU time of each in seconds, measured in turns after one warm-up."""
    best = dict.fromkeys(contestants, float("inf"))
    for turn in range(repeats + 1):
        for name, run in contestants.items():
            start = time.process_time()
            run()
            if turn:
                best[name] = min(best[name], time.process_time() - start)
    return best


def main(wanted: list[str]) -> None:
    """Print a line for each mixer."""
    torch.set_num_threads(1)
    ember.set_backend("torch")
    rng = np.random.default_rng(0)
    x = rng.integers(0, VOCABULARY, (BATCH, LENGTH))
    y = rng.integers(0, VOCABULARY, (BATCH, LENGTH))
    peer = torch_step(x, y)
    for mixer in wanted or GOALS:
        times = race({"hand-written attention": peer, mixer: ember_step(mixer, x, y)})
        ratio = times[mixer] / times["hand-written attention"]
        goal = GOALS.get(mixer)
        print(
            f"{mixer:24} {times[mixer]:6.2f} s, {ratio:5.2f}x hand-written attention "
            f"({times['hand-written attention']:.2f} s){f', goal {goal}x' if goal else ''}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
