"""Reference simulators of spiking neurons: a loop for autograd, and one of single events."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]


def loop(
    x: torch.Tensor,
    beta: torch.Tensor,
    threshold: torch.Tensor,
    fire: Callable[[torch.Tensor], torch.Tensor],
    reset: str = "soft",
    alpha: torch.Tensor | None = None,
    rho: torch.Tensor | None = None,
    strength: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    refractory: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return spikes and voltages before the reset, for torch's autograd; delays are one step."""
    v = current = adaptation = z = torch.zeros_like(x[:, 0])
    rest = torch.zeros_like(v)
    spikes, voltages = [], []
    for now in x.unbind(1):
        drive = now if weight is None else now + z @ weight.T
        if alpha is not None:
            drive = current = alpha * current + drive
        awake = rest == 0
        v = torch.where(awake, beta * v + drive, v)
        theta = threshold if rho is None else threshold + strength * adaptation
        z = torch.where(awake, fire(v - theta), 0.0)
        spikes.append(z)
        voltages.append(v)
        hit = z.detach()
        if reset == "soft":
            v = v - theta * hit
        elif reset == "hard":
            v = v - v * hit
        if rho is not None:
            adaptation = rho * adaptation + z
        rest = torch.clamp(rest - 1, min=0) + refractory * hit
    return torch.stack(spikes, 1), torch.stack(voltages, 1)


def events(x: Array, beta: float, threshold: float, weight: Array, delays: Array) -> Array:
    """Return the spikes of one example of recurrent neurons with a hard reset.

    Spikes wait in a queue until they arrive; nothing else remembers the past.
    """
    length, size = x.shape
    queue: list[tuple[int, int, float]] = []
    v = np.zeros(size)
    spikes = np.zeros((length, size))
    for at in range(length):
        arrived = np.zeros(size)
        while queue and queue[0][0] == at:
            _, target, amount = heapq.heappop(queue)
            arrived[target] += amount
        v = beta * v + x[at] + arrived
        for source in np.flatnonzero(v > threshold):
            spikes[at, source] = 1
            v[source] = 0.0
            for target in range(size):
                delivery = (at + int(delays[target, source]), target, weight[target, source])
                heapq.heappush(queue, delivery)
    return spikes
