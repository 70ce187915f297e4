"""Peak memory of training steps, against hand-written torch, and of the estimate.

The model has 12 blocks of attention and SwiGLU. The hand-written code has the same weights and
uses torch's own functions, `torch.utils.checkpoint` and `torch.optim.AdamW`. Both are measured by
the counts of torch's allocator in one run: parameters, optimizer state, and the largest growth
during a step. The last table compares `memory.estimate`, from half of a batch, with
`memory.measure` of the batch, for each family of models on each backend.

    OMP_NUM_THREADS=1 python benchmarks/memory.py [steps | estimates]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from ember_ml import memory, ops
from ember_ml.backend import available, use_backend
from ember_ml.backend.torch.memory import record
from ember_ml.memory.growth import Growth
from ember_ml.nn import tensor
from ember_ml.nn.models import LanguageModel

BLOCKS, HIDDEN, HEADS, VOCABULARY = 12, 128, 4, 2000
BATCH, LENGTH, CHUNK = 8, 128, 256
GOAL, ESTIMATE_GOAL = 1.05, 0.15
LAYERS = f"(attention[num_heads={HEADS},positions=none,bias=false] swiglu)x{BLOCKS}"
CHUNKED = {"type": "chunked_cross_entropy", "chunk_size": CHUNK}
SMALL_STATE = {"type": "adamw", "state_bits": 8}
CASES = {
    "plain": ({}, {}),
    "remat": ({"remat": "blocks"}, {"remat": True}),
    "chunked loss": ({"loss": CHUNKED}, {"chunked": True}),
    "remat, chunked loss": ({"remat": "blocks", "loss": CHUNKED}, {"remat": True, "chunked": True}),
    "8-bit state": ({"optimizer": SMALL_STATE}, {}),
    "all three": (
        {"remat": "blocks", "loss": CHUNKED, "optimizer": SMALL_STATE},
        {"remat": True, "chunked": True},
    ),
}
FAMILIES = {
    "attention": "(attention swiglu)x3",
    "mamba": "(mamba swiglu)x3",
    "hyena": "(hyena swiglu)x3",
    "gated linear attention": "(gated_linear_attention swiglu)x3",
    "rwkv": "(rwkv swiglu)x3",
    "lstm": "(lstm swiglu)x2",
    "gru": "(gru swiglu)x2",
    "moe": "(attention moe)x3",
    "ltc": "ltc swiglu",
    "cfc": "(cfc swiglu)x2",
}


class HandWritten:
    """The same model in plain torch.

    Args:
        model: Ember model whose weights are copied.
        remat: Whether to checkpoint each block.
        chunked: Whether to compute the loss in chunks.
    """

    def __init__(self, model: LanguageModel, remat: bool = False, chunked: bool = False) -> None:
        self.p = {
            name: torch.nn.Parameter(torch.tensor(x.numpy().copy()))
            for name, x in model.named_parameters()
        }
        self.remat, self.chunked = remat, chunked
        self.optimizer = torch.optim.AdamW(self.p.values(), lr=1e-3, fused=True)

    def attention(self, x: torch.Tensor, at: str) -> torch.Tensor:
        """Return the output of a residual block with attention."""
        y = F.rms_norm(x, (HIDDEN,), self.p[f"{at}.norm.weight"], 1e-6)
        y = F.linear(y, self.p[f"{at}.layer.qkv.weight"])
        q, k, v = (
            part.view(*part.shape[:2], HEADS, -1).transpose(1, 2) for part in y.chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(x.shape)
        return x + F.linear(y, self.p[f"{at}.layer.out.weight"])

    def swiglu(self, x: torch.Tensor, at: str) -> torch.Tensor:
        """Return the output of a residual block with SwiGLU."""
        y = F.rms_norm(x, (HIDDEN,), self.p[f"{at}.norm.weight"], 1e-6)
        gate, value = F.linear(y, self.p[f"{at}.layer.expand.weight"]).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * value, self.p[f"{at}.layer.reduce.weight"])

    def loss(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean cross-entropy."""
        x = F.embedding(tokens, self.p["embedding.weight"])
        for at in range(2 * BLOCKS):
            block = self.swiglu if at % 2 else self.attention
            name = f"backbone.blocks.{at}"
            x = checkpoint(block, x, name, use_reentrant=False) if self.remat else block(x, name)
        x = F.rms_norm(x, (HIDDEN,), self.p["backbone.norm.weight"], 1e-6).flatten(0, 1)
        if not self.chunked:
            return F.cross_entropy(self.head(x), targets.flatten())
        parts = zip(x.split(CHUNK), targets.flatten().split(CHUNK), strict=True)
        losses = [checkpoint(self.chunk_loss, *part, use_reentrant=False) for part in parts]
        return torch.stack(losses).sum() / len(x)

    def head(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        return F.linear(x, self.p["head.weight"])

    def chunk_loss(self, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the sum of the cross-entropies of a chunk."""
        return F.cross_entropy(self.head(x), targets, reduction="sum")

    def step(self, tokens: torch.Tensor, targets: torch.Tensor) -> float:
        """Train on a batch, and return the loss."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(tokens, targets)
        loss.backward()
        self.optimizer.step()
        return float(loss)

    def peak(self, tokens: torch.Tensor, targets: torch.Tensor) -> int:
        """Return the peak memory of a step in bytes."""
        self.step(tokens, targets)
        with record() as recorder:
            self.step(tokens, targets)
            self.optimizer.zero_grad(set_to_none=True)
            recorder.restart()
            self.step(tokens, targets)
        parameters = sum(x.nbytes for x in self.p.values())
        state = [x for each in self.optimizer.state.values() for x in each.values()]
        fixed = parameters + sum(x.nbytes for x in state)
        return fixed + Growth(recorder.changes, recorder.changes, (1, 1)).peak(1)


def compare_steps() -> float:
    """Print the peaks of all cases, and return the largest ratio to hand-written torch."""
    ops.random.set_seed(0)
    model = LanguageModel(LAYERS, VOCABULARY, HIDDEN)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, VOCABULARY, (BATCH, LENGTH)) for _ in range(2))
    batch, natives = (tensor.array(x), tensor.array(y)), (torch.tensor(x), torch.tensor(y))
    first, _ = HandWritten(model), check_same(model, batch, natives)
    plain = first.peak(*natives)
    print(f"{model.num_parameters():,} parameters, {BATCH} x {LENGTH} tokens, torch")
    print(f"{'':22}{'Ember / hand-written':>24}{'Ember / plain torch':>24}")
    worst = 0.0
    for name, (options, by_hand) in CASES.items():
        own = memory.measure(model, batch, **options).peak
        other = HandWritten(model, **by_hand).peak(*natives)
        worst = max(worst, own / other)
        print(f"{name:22}{own / other:24.3f}{own / plain:24.3f}")
    return worst


def check_same(model: LanguageModel, batch: tuple, natives: tuple) -> None:
    """Raise an error unless both models have the same loss."""
    own = float(ops.cross_entropy(model(batch[0]), batch[1]))
    other = float(HandWritten(model).loss(*natives).detach())
    if not math.isclose(own, other, rel_tol=1e-5):
        raise SystemExit(f"the models differ: losses {own} and {other}")


def compare_backends() -> None:
    """Print what the options save on each backend."""
    print(f"\n{'peak / plain':22}" + "".join(f"{backend:>12}" for backend in available()))
    peaks: dict[str, list[float]] = {name: [] for name in CASES}
    for backend in available():
        with use_backend(backend):
            ops.random.set_seed(0)
            model = LanguageModel(LAYERS, VOCABULARY, HIDDEN)
            tokens = ops.zeros((BATCH, LENGTH), dtype="int64")
            for name, (options, _) in CASES.items():
                peaks[name].append(memory.measure(model, (tokens, tokens), **options).peak)
    for name, row in peaks.items():
        ratios = [peak / plain for peak, plain in zip(row, peaks["plain"], strict=True)]
        print(f"{name:22}" + "".join(f"{ratio:12.3f}" for ratio in ratios))


def compare_estimates() -> float:
    """Print the estimates relative to the measurements, and return the largest difference."""
    print(f"\n{'estimate / measured':24}" + "".join(f"{backend:>12}" for backend in available()))
    worst = 0.0
    for name, layers in FAMILIES.items():
        ratios = [estimate_ratio(layers, backend) for backend in available()]
        worst = max(worst, *[abs(ratio - 1.0) for ratio in ratios])
        print(f"{name:24}" + "".join(f"{ratio:12.3f}" for ratio in ratios), flush=True)
    return worst


def estimate_ratio(layers: str, backend: str) -> float:
    """Return the peak that is estimated from half of a batch, divided by the measured one."""
    with use_backend(backend):
        ops.random.set_seed(0)
        model = LanguageModel(layers, 500, 32, max_length=64)
        tokens = ops.zeros((64, 64), dtype="int64")
        estimate = memory.estimate(model, (tokens[:32], tokens[:32])).for_batch(64)
        return estimate.peak / memory.measure(model, (tokens, tokens)).peak


def main(parts: list[str]) -> None:
    """Run the comparisons, and report whether the goals are reached."""
    goals: list[tuple[str, Callable[[], float], float]] = [
        ("steps", lambda: in_torch(compare_steps), GOAL),
        ("estimates", compare_estimates, ESTIMATE_GOAL),
    ]
    for name, run, goal in goals:
        if name in (parts or ["steps", "estimates"]):
            worst = run()
            print(f"{name}: worst {worst:.3f}, goal {goal}: {'yes' if worst <= goal else 'NO'}")
            if name == "steps":
                compare_backends()


def in_torch(function: Callable[[], float]) -> float:
    """Run a function on torch."""
    with use_backend("torch"):
        return function()


if __name__ == "__main__":
    main(sys.argv[1:])
