"""linear_recurrence against a plain torch loop under autograd, in one run.

The loop unstacks the steps once: the gradient of a loop that indexes a[:, t] is quadratic in the
length, a thousand times as much here. Each figure is the best of many repetitions. The
implementations take turns, so that noise affects all of them equally.

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
REPEATS = 60
GOAL = 5.0  # times faster than the loop, forward and backward, on torch

Call = Callable[[], Any]


def arrays(shape: tuple[int, ...]) -> list[Any]:
    """Return factors below one, inputs, and a gradient of the states."""
    rng = np.random.default_rng(0)
    drawn = rng.uniform(0.5, 1.0, shape), rng.standard_normal(shape), rng.standard_normal(shape)
    return [x.astype(np.float32) for x in drawn]


def loop(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the recurrence computed step by step."""
    h = torch.zeros_like(b[:, 0])
    states = []
    for factor, entry in zip(a.unbind(1), b.unbind(1), strict=True):
        h = factor * h + entry
        states.append(h)
    return torch.stack(states, 1)


def loop_calls(shape: tuple[int, ...]) -> tuple[Call, Call]:
    """Return the loop forward, and forward and backward."""
    a, b, g = (torch.from_numpy(x) for x in arrays(shape))
    leaves = [x.clone().requires_grad_() for x in (a, b)]
    return lambda: loop(a, b), lambda: torch.autograd.grad(loop(*leaves), leaves, g)


def ember_calls(shape: tuple[int, ...], backend: str) -> tuple[Call, Call]:
    """Return the op forward, and forward and backward on a tape."""
    with use_backend(backend):
        a, b, g = (tensor.array(x) for x in arrays(shape))

    def forward() -> None:
        ops.synchronize(*ops.linear_recurrence(a, b))

    def both() -> None:
        with GradientTape() as tape:
            tape.watch([a, b])
            h, _ = ops.linear_recurrence(a, b)
        ops.synchronize(*tape.gradient(h, [a, b], g))

    return forward, both


def best(calls: dict[str, Call]) -> dict[str, float]:
    """Return milliseconds per call, measured in turns."""
    times = dict.fromkeys(calls, float("inf"))
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name] = min(times[name], (time.perf_counter() - start) * 1e3)
    return times


def linear_recurrence(backends: list[str]) -> None:
    """Print milliseconds and the speedup over the loop."""
    for shape in SHAPES:
        pairs = {"torch loop": loop_calls(shape)}
        pairs |= {backend: ember_calls(shape, backend) for backend in backends}
        print(f"\nlinear_recurrence {shape} float32: ms, best of {REPEATS}")
        print(f"{'':12} {'forward':>9} {'':>7} {'and backward':>13} {'':>7}")
        forward = best({name: pair[0] for name, pair in pairs.items()})
        both = best({name: pair[1] for name, pair in pairs.items()})
        for name in pairs:
            ratios = forward["torch loop"] / forward[name], both["torch loop"] / both[name]
            mark = "  <-- misses" if name == "torch" and ratios[1] < GOAL else ""
            print(
                f"{name:12} {forward[name]:9.2f} {ratios[0]:6.1f}x {both[name]:13.2f} "
                f"{ratios[1]:6.1f}x{mark}"
            )


if __name__ == "__main__":
    linear_recurrence(sys.argv[1:] or available())
