"""A training loop of PyTorch with an Ember Mamba inside.

    python examples/inside_torch.py

The model is a `torch.nn.Module`: an embedding and a head of torch around two Mamba layers of Ember.
The loop, the optimizer, the scheduler and gradient clipping are those of torch. The task is to
repeat the token that came some positions before. At the end, the Ember layers are saved, and
loaded on NumPy.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

import ember_ml as ember
from ember_ml.interop import to_torch
from ember_ml.nn.blocks import Block
from ember_ml.nn.tensor import array

VOCABULARY, LENGTH, DELAY = 16, 32, 5
IGNORED = -100
"""Target that F.cross_entropy ignores."""


class DelayModel(torch.nn.Module):
    """Embedding, Ember layers and head."""

    def __init__(self, vocab_size: int, width: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab_size, width)
        self.mixers = to_torch(Block(hidden_size=width, layers="(mamba swiglu)x2"))
        self.head = torch.nn.Linear(width, vocab_size)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next tokens."""
        return self.head(self.mixers(self.embedding(tokens)))


def batch(size: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random tokens, and as targets the tokens DELAY positions before."""
    tokens = torch.randint(0, VOCABULARY, (size, LENGTH), generator=generator)
    return tokens, F.pad(tokens[:, :-DELAY], (DELAY, 0), value=IGNORED)


def accuracy(model: DelayModel, generator: torch.Generator) -> float:
    """Return the share of targets that the model predicts."""
    tokens, targets = batch(256, generator)
    with torch.no_grad():
        return float((model(tokens).argmax(-1) == targets)[:, DELAY:].float().mean())


def main(steps: int, out: Path) -> None:
    """Train, report and save."""
    torch.manual_seed(0)
    ember.ops.random.set_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = DelayModel(VOCABULARY, width=32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps)
    for step in range(1, steps + 1):
        tokens, targets = batch(32, generator)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 50 == 0 or step == steps:
            print(f"step {step}: loss {loss.item():.3f}")
    print(f"accuracy {accuracy(model.eval(), generator):.3f}")
    mixers = model.mixers.ember
    ember.save(mixers, out)
    with torch.no_grad():
        x = model.embedding(batch(4, generator)[0])
        expected = model.mixers(x).numpy()
    with ember.use_backend("numpy"):
        y = ember.load(out)(array(x.numpy())).numpy()
    print(f"the Ember layers on NumPy differ by {np.abs(y - expected).max():.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("runs/inside_torch"))
    given = parser.parse_args()
    ember.set_backend("torch")
    main(given.steps, given.out)
