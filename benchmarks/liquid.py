"""Recurrent and liquid layers against ncps and torch.nn, in one run on one thread.

Each figure is a training step: forward, and the gradients of all parameters. Figures are the best
CPU time of many repetitions, taken in turns, and the peak memory of a step.

    python benchmarks/liquid.py [name ...]
"""

from __future__ import annotations

import sys
from typing import Any

import ncps.torch
import ncps.wirings
import torch
from measuring import Call, best, peak

from ember_ml import nn, ops, use_backend
from ember_ml.nn import wirings
from ember_ml.nn.layers.sequence_mixing import recurrent

BATCH, TIME, FEATURES = 32, 64, 16
SECONDS = 4.0


def ember_step(layer: nn.Module) -> Call:
    """Return the gradients of a layer's parameters, on torch."""
    x = ops.random.normal((BATCH, TIME, FEATURES), seed=0)
    step = nn.value_and_grad(layer, lambda: ops.sum(layer(x)))
    return lambda: step()


def torch_step(layer: torch.nn.Module) -> Call:
    """Return the gradients of a torch module's parameters."""
    x = torch.tensor(ops.random.normal((BATCH, TIME, FEATURES), seed=0).numpy())
    parameters = [p for p in layer.parameters() if p.requires_grad]

    def step() -> Any:
        out = layer(x)
        return torch.autograd.grad(
            (out[0] if isinstance(out, tuple) else out).sum(), parameters, allow_unused=True
        )

    return step


class Leaky(recurrent.RecurrentCell):
    """Cell as a user might write it."""

    def __init__(self, features: int) -> None:
        self.in_features = self.out_features = self.widths = features
        self.weight = nn.Parameter(ops.random.normal((features, features), 0.0, 0.1, seed=0))
        self.leak = nn.Parameter(ops.zeros((features,)))

    def step(self, x: Any, state: Any, timespan: Any = 1.0) -> Any:
        """Return the output and the state after a leaky step."""
        keep = ops.sigmoid(self.leak)
        state = keep * state + (1.0 - keep) * ops.tanh(x + ops.linear(state, self.weight))
        return state, state


class Scanned(nn.Module):
    """The same step with `ops.scan`."""

    def __init__(self, features: int) -> None:
        self.weight = nn.Parameter(ops.random.normal((features, features), 0.0, 0.1, seed=0))
        self.leak = nn.Parameter(ops.zeros((features,)))

    def forward(self, x: Any) -> Any:
        """Return the outputs."""

        def step(state: Any, entry: Any) -> Any:
            keep = ops.sigmoid(self.leak)
            inside = ops.tanh(entry + ops.linear(state, self.weight))
            state = keep * state + (1.0 - keep) * inside
            return state, state

        return ops.scan(step, ops.zeros((x.shape[0], x.shape[2])), x, axis=1)[1]


class TorchLeaky(torch.nn.Module):
    """The same in plain torch."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features, features) * 0.1)
        self.leak = torch.nn.Parameter(torch.zeros(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the outputs of a loop over the steps."""
        state = torch.zeros(x.shape[0], x.shape[2])
        states = []
        for entry in x.unbind(1):
            keep = torch.sigmoid(self.leak)
            inside = torch.tanh(entry + torch.nn.functional.linear(state, self.weight))
            state = keep * state + (1.0 - keep) * inside
            states.append(state)
        return torch.stack(states, 1)


def pairs() -> dict[str, tuple[Call, Call, float]]:
    """Return Ember's function, the peer's and the target speedup."""
    ncp, theirs = wirings.AutoNCP(64, 4), ncps.wirings.AutoNCP
    size = FEATURES
    return {
        "LTC, AutoNCP(64, 4)": (
            ember_step(recurrent.LTC(size, ncp)),
            torch_step(ncps.torch.LTC(size, theirs(64, 4))),
            5.0,
        ),
        "CfC(64)": (
            ember_step(recurrent.CfC(size, 64)),
            torch_step(ncps.torch.CfC(size, 64)),
            3.0,
        ),
        "WiredCfC, AutoNCP(64, 4)": (
            ember_step(recurrent.WiredCfC(size, ncp)),
            torch_step(ncps.torch.CfC(size, theirs(64, 4))),
            5.0,
        ),
        "LSTM(64)": (
            ember_step(recurrent.LSTM(size, 64)),
            torch_step(torch.nn.LSTM(size, 64, batch_first=True)),
            1 / 1.1,
        ),
        "GRU(64)": (
            ember_step(recurrent.GRU(size, 64)),
            torch_step(torch.nn.GRU(size, 64, batch_first=True)),
            1 / 1.1,
        ),
        "a cell of one's own, layer": (
            ember_step(recurrent.Recurrent(Leaky(size))),
            torch_step(TorchLeaky(size)),
            1 / 1.1,
        ),
        "a cell of one's own, scan": (
            ember_step(Scanned(size)),
            torch_step(TorchLeaky(size)),
            1 / 1.1,
        ),
    }


def main(wanted: list[str]) -> None:
    """Print a table."""
    torch.set_num_threads(1)
    print(f"batch {BATCH}, {TIME} steps, {FEATURES} features; a training step, ms and MB")
    print(f"{'':26} {'ember':>8} {'peer':>8} {'':>7} {'ember':>8} {'peer':>8}")
    for name, (ours, theirs, goal) in pairs().items():
        if wanted and not any(part.lower() in name.lower() for part in wanted):
            continue
        fast, slow = best([ours, theirs], SECONDS)
        small, large = peak(ours), peak(theirs)
        mark = "" if slow / fast >= goal else f"  <-- misses {goal:.2f}x"
        print(
            f"{name:26} {fast:8.2f} {slow:8.2f} {slow / fast:6.2f}x {small:8.1f} {large:8.1f}{mark}"
        )


if __name__ == "__main__":
    with use_backend("torch"):
        main(sys.argv[1:])
