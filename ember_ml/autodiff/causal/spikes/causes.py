"""Decomposition of the voltage of a spike into the contributions of its causes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ember_ml._core.numbers import count
from ember_ml.autodiff.causal.spikes.dynamics import Array, Response
from ember_ml.autodiff.causal.spikes.events import Cause, Causes, SpikeEvent
from ember_ml.autodiff.causal.spikes.run import SpikeRun
from ember_ml.autodiff.causal.spikes.store import SpikeStore


class Arrivals(NamedTuple):
    """Spikes of one layer that contribute to a voltage, one entry each.

    Attributes:
        layer: Name of the layer of the spikes.
        times: Steps of the spikes.
        neurons: Their neurons.
        steps: Steps at which they arrive.
        contributions: Signed contributions.
    """

    layer: str
    times: Array
    neurons: Array
    steps: Array
    contributions: Array


class Parts(NamedTuple):
    """Contributions to a voltage.

    Attributes:
        arrivals: Spikes, by layer.
        external: Contribution of the drive that no spike explains.
        resets: Contributions of the neuron's own resets, one each.
        initial: Contribution of the initial state.
        evicted: Contribution of dropped spikes.
        voltage: The voltage.
    """

    arrivals: list[Arrivals]
    external: float
    resets: Array
    initial: float
    evicted: float
    voltage: float

    @property
    def magnitude(self) -> float:
        """Sum of the absolute contributions."""
        spikes = sum(float(np.abs(part.contributions).sum()) for part in self.arrivals)
        rest = abs(self.external) + abs(self.initial) + abs(self.evicted)
        return spikes + rest + float(np.abs(self.resets).sum())


def causes(store: SpikeStore, event: SpikeEvent, top: int | None) -> Causes:
    """Return the decomposition of the voltage of a spike.

    Args:
        store: The recorded runs.
        event: The spike.
        top: Maximum number of spikes to list; None for all.
    """
    top = None if top is None else count("causes", "top", top)
    run, index = store.find(event)
    parts = decompose(run, index)
    shown, others = _largest(parts.arrivals, event.batch, top)
    return Causes(
        event=event,
        voltage=parts.voltage,
        threshold=_threshold(run, index, event.neuron),
        spikes=tuple(shown),
        others=others,
        external=parts.external,
        resets=float(parts.resets.sum()),
        initial=parts.initial,
        evicted=parts.evicted,
        magnitude=parts.magnitude,
    )


def _largest(arrivals: list[Arrivals], batch: int, top: int | None) -> tuple[list[Cause], float]:
    """Return the largest contributions, and the sum of the others."""
    if not arrivals:
        return [], 0.0
    arrivals = sorted(arrivals, key=lambda part: part.layer)
    values = np.concatenate([part.contributions for part in arrivals])
    order = np.argsort(-np.abs(values), kind="stable")
    count = len(order) if top is None else min(top, len(order))
    owners = np.repeat(np.arange(len(arrivals)), [len(part.times) for part in arrivals])
    starts = np.cumsum([0, *(len(part.times) for part in arrivals)])
    causes = []
    for at in order[:count]:
        part = arrivals[owners[at]]
        place = at - starts[owners[at]]
        event = SpikeEvent(part.layer, batch, int(part.times[place]), int(part.neurons[place]))
        causes.append(Cause(event, float(values[at]), int(part.steps[place])))
    return causes, float(values[order[count:]].sum())


def _threshold(run: SpikeRun, index: int, neuron: int) -> float:
    return float(
        run.dynamics.threshold[neuron] if run.thresholds is None else run.thresholds[index]
    )


def decompose(run: SpikeRun, index: int) -> Parts:
    """Return the contributions to the voltage of a recorded spike.

    Args:
        run: Run of the spike.
        index: Index of the spike in the run.
    """
    event = run.event(run.places[index])
    own = run.times(event.batch, event.neuron)
    own = own[own < event.time]
    if run.dynamics.reset == "hard":  # the last reset is known even if the spike was dropped
        own = run.previous[index : index + 1]
        own = own[own >= 0]
    answer = run.respond(event, own)
    drive = run.host_drive()[event.batch, answer.first : event.time + 1, event.neuron]
    external = float(np.dot(drive.astype(np.float64), answer.inputs))
    recurrent, inputs = _recurrent(run, event, answer), _inputs(run, event, answer)
    if inputs is not None:
        external -= float(inputs.contributions.sum())
    arrivals = [part for part in (recurrent, inputs) if part is not None and len(part.times)]
    resets = _resets(run, event, own, answer)
    initial = _initial(run, event, answer)
    voltage = float(run.voltages[index])
    evicted = 0.0
    if _reaches_evicted(run, answer.first):
        known = sum(float(part.contributions.sum()) for part in arrivals)
        evicted = voltage - known - external - float(resets.sum()) - initial
    return Parts(arrivals, external, resets, initial, evicted, voltage)


def _recurrent(run: SpikeRun, event: SpikeEvent, answer: Response) -> Arrivals | None:
    """Return the contributions of the recurrent spikes."""
    if run.taps is None:
        return None
    low = max(0, answer.first - len(run.taps))
    window = run.window(event.batch, low, event.time)
    values = window * _transmitted(run.taps[:, event.neuron], low, len(window), answer)
    times, neurons = np.nonzero(values)
    delays = (run.taps[:, event.neuron] != 0).argmax(0) + 1  # the shortest of each synapse
    steps = np.maximum(times + low + delays[neurons], answer.first)
    return Arrivals(run.name, times + low, neurons, steps, values[times, neurons])


def _transmitted(taps: Array, low: int, count: int, answer: Response) -> Array:
    """Return the contribution that a spike of each source would have, (steps, sources).

    Args:
        taps: Weights to the neuron, (delays, sources).
        low: First step of the spikes.
        count: Number of steps of the spikes.
        answer: Response of the voltage.
    """
    values = np.zeros((count, taps.shape[1]))
    for delay, weights in enumerate(taps, 1):
        sources = np.flatnonzero(weights)
        steps = np.arange(low + delay, low + delay + count) - answer.first
        inside = (steps >= 0) & (steps < len(answer.inputs))
        factors = np.where(inside, answer.inputs[np.where(inside, steps, 0)], 0.0)
        values[:, sources] += factors[:, None] * weights[sources]
    return values


def _inputs(run: SpikeRun, event: SpikeEvent, answer: Response) -> Arrivals | None:
    """Return the contributions of the input spikes, if the drive is a linear map of them."""
    link = run.link
    if link is None:
        return None
    values = link.host_inputs()[event.batch, answer.first : event.time + 1].astype(np.float64)
    if link.weight is None:
        only = np.zeros(values.shape[-1])
        only[event.neuron] = 1.0
        values = values * only
    else:
        values = values * link.weight[event.neuron]
    values = values * answer.inputs[:, None]
    steps, neurons = np.nonzero(values)
    times = steps + answer.first
    return Arrivals(link.name, times, neurons, times, values[steps, neurons])


def _resets(run: SpikeRun, event: SpikeEvent, own: Array, answer: Response) -> Array:
    """Return the contributions of the neuron's earlier soft resets."""
    if run.dynamics.reset != "soft":
        return np.zeros(0)
    times = own[own >= answer.first - 1]
    factors = answer.voltage[times - (answer.first - 1)]
    if run.thresholds is None:
        return -float(run.dynamics.threshold[event.neuron]) * factors
    places = (event.batch * run.shape[1] + times) * run.shape[2] + event.neuron
    return -run.thresholds[np.searchsorted(run.places, places)] * factors


def _initial(run: SpikeRun, event: SpikeEvent, answer: Response) -> float:
    """Return the contribution of the state before the first step."""
    state, row, neuron = run.initial, event.batch, event.neuron
    value = 0.0
    if state.voltage is not None and answer.first == 0:
        value += float(state.voltage[row, neuron]) * float(answer.voltage[0])
    if state.current is not None and answer.first == 0:
        value += float(state.current[row, neuron]) * answer.current
    if state.spikes is not None and run.taps is not None:
        past = state.spikes[row]
        values = _transmitted(run.taps[:, neuron], -len(past), len(past), answer)
        value += float((past * values).sum())
    return value


def _reaches_evicted(run: SpikeRun, first: int) -> bool:
    """Return whether spikes that were dropped can contribute from a step on."""
    if run.taps is not None:
        return run.is_evicted(max(0, first - len(run.taps)))
    return run.dynamics.reset == "soft" and run.is_evicted(max(0, first - 1))
