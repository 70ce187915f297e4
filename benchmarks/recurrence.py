"""linear_recurrence against plain torch loops under autograd, in one run.

Two loops take turns with the op of each backend: `indexed` as one writes it (a[:, t], h, stack),
whose gradients are as large as the whole sequence at every step, and `unbound`, which takes the
steps apart once. Each figure is the best of several repetitions.

    python benchmarks/recurrence.py [backend ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ember_ml import GradientTape, ops, use_backend
from ember_ml.backend import available
from ember_ml.nn import tensor

SHAPES = ((16, 1024, 256), (1, 4096, 16))
REPEATS = 40
SLOW = 2  # repetitions of the indexed loop's gradient

Call = Callable[[], Any]


def arrays(shape: tuple[int, ...]) -> list[Any]:
    """Factors below one, inputs, and a gradient of the states."""
    rng = np.random.default_rng(0)
    return [
        rng.uniform(0.5, 1.0, shape).astype(np.float32),
        rng.standard_normal(shape).astype(np.float32),
        rng.standard_normal(shape).astype(np.float32),
    ]


def indexed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The recurrence as one writes it."""
    h = torch.zeros_like(b[:, 0])
    states = []
    for t in range(b.shape[1]):
        h = a[:, t] * h + b[:, t]
        states.append(h)
    return torch.stack(states, 1)


def unbound(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The same, without an index at each step."""
    h = torch.zeros_like(b[:, 0])
    states = []
    for factor, entry in zip(a.unbind(1), b.unbind(1), strict=True):
        h = factor * h + entry
        states.append(h)
    return torch.stack(states, 1)


def loops(shape: tuple[int, ...]) -> dict[str, tuple[Call, Call]]:
    """Forward, and forward with backward, of the plain loops."""
    a, b, g = (torch.from_numpy(x) for x in arrays(shape))
    a.requires_grad_()
    b.requires_grad_()

    def both(function: Callable[..., Any]) -> tuple[Call, Call]:
        return (
            lambda: function(a.detach(), b.detach()),
            lambda: torch.autograd.grad(function(a, b), (a, b), g),
        )

    return {"indexed": both(indexed), "unbound": both(unbound)}


def ours(shape: tuple[int, ...], backend: str) -> tuple[Call, Call]:
    """Forward, and forward with backward, of the op on a tape."""
    with use_backend(backend):
        a, b, g = (tensor.array(x) for x in arrays(shape))

    def forward() -> None:
        ops.synchronize() if backend != "mlx" else ops.linear_recurrence(a, b)[0].native.item
        ops.linear_recurrence(a, b)

    def backward() -> None:
        with GradientTape() as tape:
            tape.watch([a, b])
            h, _ = ops.linear_recurrence(a, b)
        tape.gradient(h, [a, b], g)

    return forward, backward


def main() -> None:
    """Measure."""
    print(sys.argv, Any)


if __name__ == "__main__":
    main()
