"""Equations of the neurons of a spiking run, and their linear response."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Reset: TypeAlias = Literal["soft", "hard", "none"]
NEGLIGIBLE = 1e-12
"""Responses that have decayed below this are not summed; float32 has 7 digits."""


@dataclass(frozen=True)
class Dynamics:
    """Constants of the neurons, as in `ops.spiking_scan`.

    Attributes:
        beta: Decay of the voltage in a step, (neurons,).
        threshold: Threshold, (neurons,).
        alpha: Decay of the synaptic current in a step, (neurons,); None without one.
        rho: Decay of the adaptation in a step, (neurons,); None without adaptation.
        strength: Increase of the threshold by one unit of adaptation, (neurons,), with `rho`.
        reset: "soft" subtracts the threshold, "hard" sets the voltage to 0, "none" keeps it.
        refractory: Number of steps after a spike in which the neuron keeps its voltage and ignores
            its input.
    """

    beta: Array
    threshold: Array
    alpha: Array | None = None
    rho: Array | None = None
    strength: Array | None = None
    reset: Reset = "soft"
    refractory: int = 0

    def memory(self, neuron: int) -> int | None:
        """Return after how many steps an input is forgotten; None if it never is."""
        decays = [float(self.beta[neuron])]
        if self.alpha is not None:
            decays.append(float(self.alpha[neuron]))
        longest = max(map(abs, decays))
        if longest >= 1.0:
            return None
        if longest == 0.0:
            return 1
        steps = 1 + math.ceil(math.log(NEGLIGIBLE) / math.log(longest))
        return steps * len(decays) * (self.refractory + 1)


class Response(NamedTuple):
    """Response of the voltage of a neuron at a step, before the reset, to earlier values.

    Attributes:
        first: First step that counts.
        inputs: Response to a unit input at each step from `first` on.
        voltage: Response to the voltage after each step from `first - 1` on, after its reset.
        current: Response to the synaptic current before the step `first`.
    """

    first: int
    inputs: Array
    voltage: Array
    current: float


def response(
    dynamics: Dynamics,
    neuron: int,
    time: int,
    spikes: Array,
    resting: int = 0,
    mask: Array | None = None,
) -> Response:
    """Return the response of a voltage.

    Args:
        dynamics: Constants of the neurons.
        neuron: Index of the neuron.
        time: Step of the voltage.
        spikes: Steps at which the neuron spiked before, sorted.
        resting: Number of steps at the beginning in which the neuron is refractory.
        mask: (time,), False where the state does not change. Default: everywhere True.
    """
    hard = dynamics.reset == "hard" and len(spikes) > 0
    first = int(spikes[-1]) + 1 if hard and dynamics.alpha is None else 0
    memory = None if mask is not None else dynamics.memory(neuron)
    if memory is not None:
        first = max(first, time + 1 - memory)
    steps = np.arange(first, time + 1)
    real = np.ones(len(steps), bool) if mask is None else mask[first : time + 1]
    active = real & ~resting_steps(dynamics.refractory, steps, spikes, resting, mask)
    beta = float(dynamics.beta[neuron])
    count = np.cumsum(active[::-1])[::-1].astype(np.float64)  # active steps from each one on
    count = np.append(count, 0.0)
    voltage = beta**count if beta else (count == 0).astype(np.float64)
    direct = active * voltage[1:]
    if hard:  # what came before the reset is lost
        lost = max(0, int(spikes[-1]) + 1 - first)
        voltage[:lost] = direct[:lost] = 0.0
    if dynamics.alpha is None:
        return Response(first, direct, voltage, 0.0)
    inputs, current = _filtered(direct, real, float(dynamics.alpha[neuron]))
    return Response(first, inputs, voltage, current)


def resting_steps(
    refractory: int, steps: Array, spikes: Array, resting: int, mask: Array | None
) -> Array:
    """Return the steps in which a neuron is refractory; only steps in the mask count."""
    count = steps + 1 if mask is None else np.cumsum(mask)[steps]
    result = count <= resting
    if refractory and len(spikes):
        last = np.searchsorted(spikes, steps) - 1  # the latest spike before each step
        before = spikes[np.maximum(last, 0)]
        since = count - (before + 1 if mask is None else np.cumsum(mask)[before])
        result |= (last >= 0) & (since <= refractory)
    return result


def _filtered(direct: Array, real: Array, alpha: float) -> tuple[Array, float]:
    """Return the response to inputs of a synaptic current, and to the current before them.

    Args:
        direct: Response of the voltage to the current in each step.
        real: Steps in which the current changes.
        alpha: Decay of the current in a step.
    """
    inputs = np.zeros(len(direct))
    total = 0.0
    for step in range(len(direct) - 1, -1, -1):
        total += direct[step]
        if real[step]:
            inputs[step] = total
            total *= alpha
    return inputs, total


def thresholds_of(
    dynamics: Dynamics, spikes: Array, adaptation: Array | None, mask: Array | None
) -> Array:
    """Return the adapted threshold in each step, (batch, time, neurons).

    Args:
        dynamics: Constants of the neurons, with adaptation.
        spikes: (batch, time, neurons).
        adaptation: Adaptation before the first step, (batch, neurons). Default: zeros.
        mask: (batch, time). Default: everywhere True.
    """
    assert dynamics.rho is not None
    assert dynamics.strength is not None
    batch, steps, neurons = spikes.shape
    level = np.zeros((batch, neurons)) if adaptation is None else adaptation.astype(np.float64)
    result = np.empty(spikes.shape, np.float32)
    for step in range(steps):
        result[:, step] = dynamics.threshold + dynamics.strength * level
        after = dynamics.rho * level + spikes[:, step]
        level = after if mask is None else np.where(mask[:, step, None], after, level)
    return result
