"""Influence of spikes on a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ember_ml._core.errors import ArgumentError, SpikeError
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.causal.spikes.causes import decompose
from ember_ml.autodiff.causal.spikes.dynamics import Array
from ember_ml.autodiff.causal.spikes.events import SpikeEvent
from ember_ml.autodiff.causal.spikes.host import host
from ember_ml.autodiff.causal.spikes.run import SpikeRun
from ember_ml.autodiff.causal.spikes.store import SpikeStore

if TYPE_CHECKING:
    from ember_ml.autodiff.tape import GradientTape


class Gradients(NamedTuple):
    """Gradients of a loss with respect to the tensors of a run, (batch, time, neurons).

    Attributes:
        drive: External drive.
        output: Spikes, by the layers after them only.
        membrane: Voltages before the reset, by the layers after them only.
    """

    drive: Array
    output: Array
    membrane: Array


class LossInfluence:
    """Derivatives of a loss with respect to recorded spikes and voltages.

    `influence[event]` is the derivative of the loss with respect to the spike, through the layers
    after it and through its recurrent synapses: to first order, the loss decreases by this if the
    spike is removed.

    Args:
        store: The recorded runs.
        gradients: Gradients of each run.
    """

    def __init__(self, store: SpikeStore, gradients: dict[str, Gradients]) -> None:
        self._store = store
        self._gradients = gradients
        self._by_spike: dict[str, Array] = {}

    def __getitem__(self, event: SpikeEvent) -> float:
        run, _ = self._store.find(event)
        value = float(self._spikes(run)[event.batch, event.time, event.neuron])
        if run.dynamics.rho is not None:
            value += _adaptation_gradient(run, self._gradients[run.name], event)
        return value

    def _spikes(self, run: SpikeRun) -> Array:
        """Return the derivatives by the spikes of a run, without adaptation."""
        if run.name not in self._by_spike:
            gradients = self._gradients[run.name]
            values = gradients.output.astype(np.float64)
            for delay, weights in enumerate(() if run.taps is None else run.taps, 1):
                values[:, :-delay] += gradients.drive[:, delay:] @ weights.astype(np.float64)
            self._by_spike[run.name] = values
        return self._by_spike[run.name]

    def voltage(self, event: SpikeEvent) -> float:
        """Return the derivative of the loss with respect to the voltage of a spike.

        Args:
            event: The spike.
        """
        run, _ = self._store.find(event)
        drive = self._gradients[run.name].drive
        return float(_voltage_gradient(run, drive, event.batch, event.neuron)[event.time])

    def edge(self, cause: SpikeEvent, effect: SpikeEvent) -> float:
        """Return the part of the loss that a synapse carries: lambda * contribution, absolute.

        Args:
            cause: The earlier spike.
            effect: The later spike, whose voltage has the derivative lambda.
        """
        run, index = self._store.find(effect)
        total = 0.0
        for part in decompose(run, index).arrivals:
            same = (part.times == cause.time) & (part.neurons == cause.neuron)
            if part.layer == cause.layer and cause.batch == effect.batch:
                total += float(part.contributions[same].sum())
        return abs(self.voltage(effect) * total)

    def top(self, count: int = 5, layer: str | None = None) -> list[tuple[SpikeEvent, float]]:
        """Return the spikes with the largest absolute influence on the loss, and the influence.

        Args:
            count: Maximum number of spikes.
            layer: Name of a layer. Default: all.
        """
        values = [(event, self[event]) for event in self._store.spikes(layer)]
        values.sort(key=lambda pair: (pair[1] != pair[1], -abs(pair[1]), pair[0]))  # NaN last
        return values[:count]


def _voltage_gradient(run: SpikeRun, drive: Array, row: int, neuron: int) -> Array:
    """Return the gradients of the voltages of a neuron from those of its drive, (time,).

    With a synaptic current, the drive of a step also reaches later voltages; their part is removed.
    """
    gradient = drive[row, :, neuron].astype(np.float64)
    if run.dynamics.alpha is None:
        return gradient
    alpha, later = float(run.dynamics.alpha[neuron]), 0.0
    result = np.zeros(len(gradient))
    for step in range(len(gradient) - 1, -1, -1):
        if run.mask is None or run.mask[row, step]:
            result[step] = gradient[step] - later
            later = alpha * gradient[step]
    return result


def _adaptation_gradient(run: SpikeRun, gradients: Gradients, event: SpikeEvent) -> float:
    """Return the part of the derivative of a spike that goes through its own later thresholds."""
    dynamics, row, neuron = run.dynamics, event.batch, event.neuron
    assert dynamics.rho is not None
    assert dynamics.strength is not None
    beta, rho = float(dynamics.beta[neuron]), float(dynamics.rho[neuron])
    strength = float(dynamics.strength[neuron])
    voltage = _voltage_gradient(run, gradients.drive, row, neuron)
    direct = gradients.membrane[row, :, neuron]
    spikes = run.window(row, 0, run.shape[1])[:, neuron]
    times = np.flatnonzero(spikes)
    active = run.active(row, neuron, times)
    after, total = 0.0, 0.0  # gradients of the voltage after the reset and of the adaptation
    for step in range(run.shape[1] - 1, event.time, -1):
        kept = after * (1.0 - spikes[step]) if dynamics.reset == "hard" else after
        threshold = -(voltage[step] - direct[step] - kept) if active[step] else 0.0
        if dynamics.reset == "soft":
            threshold -= after * spikes[step]
        real = run.mask is None or bool(run.mask[row, step])
        total = threshold * strength + (rho * total if real else total)
        before = voltage[step] if active[step] else kept + direct[step]
        after = beta * before if active[step] else before
    return total


def influence_on(store: SpikeStore, tape: GradientTape | None, target: Tensor) -> LossInfluence:
    """Return the influence of all recorded spikes on a loss, by one backward pass.

    Args:
        store: The recorded runs.
        tape: The tape that recorded the loss; None if it no longer exists.
        target: The loss.
    """
    store.run(next(iter(store.runs), None))  # raises an error if there is none
    if tape is None:
        raise SpikeError("influence_on: the tape that recorded the spikes no longer exists")
    if not tape.tracks(target):
        raise ArgumentError(
            "influence_on: the tape has not recorded the loss as a function of the spikes; compute "
            "it inside the `with` block, and call influence_on before the tape is used up"
        )
    runs = [run for run in store.runs.values() if run.drive is not None]
    sources = [source for run in runs for source in (run.drive, run.output, run.membrane)]
    known = [source for source in sources if source is not None and tape.tracks(source)]
    gradients = {
        id(source): gradient
        for source, gradient in zip(known, tape.gradient(target, known), strict=True)
    }

    def gradient_of(run: SpikeRun, source: Tensor | None) -> Array:
        gradient = gradients.get(id(source))
        return np.zeros(run.shape) if gradient is None else host(gradient)

    return LossInfluence(
        store,
        {
            run.name: Gradients(
                *(gradient_of(run, x) for x in (run.drive, run.output, run.membrane))
            )
            for run in runs
        },
    )
