"""Light cones: spikes that can have reached a spike, or that it can reach."""

from __future__ import annotations

import numpy as np

from ember_ml._core.numbers import positive
from ember_ml.autodiff.causal.spikes.dynamics import Array
from ember_ml.autodiff.causal.spikes.events import SpikeEvent
from ember_ml.autodiff.causal.spikes.run import SpikeRun
from ember_ml.autodiff.causal.spikes.space import coordinates
from ember_ml.autodiff.causal.spikes.store import SpikeStore


def light_cone(
    store: SpikeStore, event: SpikeEvent, speed: float | None, future: bool
) -> list[SpikeEvent]:
    """Return the spikes in the light cone of a spike, in the order of time.

    Args:
        store: The recorded runs.
        event: The spike.
        speed: Distance that a signal covers in a step; None to use the delays of the synapses.
        future: Whether to return the spikes that it can reach, instead of those that can have
            reached it.
    """
    run, _ = store.find(event)
    if speed is None:
        latencies = _shortest(store, run, event.neuron, future)
    else:
        speed = positive("light_cone", "speed", speed)
        latencies = {run.name: _flight_times(run, event.neuron, speed)}
    cone = []
    for name, latency in latencies.items():
        for other in store.runs[name].events(event.batch):
            elapsed = other.time - event.time if future else event.time - other.time
            if other != event and elapsed >= latency[other.neuron]:
                cone.append(other)
    return sorted(cone, key=lambda other: (other.time, other))


def _flight_times(run: SpikeRun, neuron: int, speed: float) -> Array:
    """Return the steps that a signal takes between a neuron and each neuron, at least 1."""
    places = coordinates(run)
    distances = np.linalg.norm(places - places[neuron], axis=-1)
    steps = np.maximum(np.ceil(distances / speed - 1e-9), 1.0)
    steps[neuron] = 1.0
    return steps


def _shortest(store: SpikeStore, run: SpikeRun, neuron: int, future: bool) -> dict[str, Array]:
    """Return the smallest total delay between a neuron and each neuron, by layer.

    The neuron's own earlier spikes count as connected in one step, by its reset.
    """
    latencies = {name: np.full(each.shape[2], np.inf) for name, each in store.runs.items()}
    done = {name: np.zeros(each.shape[2], bool) for name, each in store.runs.items()}
    latencies[run.name][neuron] = 0.0
    while True:
        open_nodes = {
            name: np.where(done[name], np.inf, values) for name, values in latencies.items()
        }
        name = min(open_nodes, key=lambda each: open_nodes[each].min(initial=np.inf))
        if not np.isfinite(open_nodes[name].min(initial=np.inf)):
            break
        nearest = int(open_nodes[name].argmin())
        done[name][nearest] = True
        for other, delays in _neighbors(store, store.runs[name], nearest, future):
            reached = latencies[name][nearest] + delays
            latencies[other] = np.minimum(latencies[other], reached)
    latencies[run.name][neuron] = 1.0
    return latencies


def _neighbors(
    store: SpikeStore, run: SpikeRun, neuron: int, future: bool
) -> list[tuple[str, Array]]:
    """Return the delay of the synapse to or from each neuron, by layer; infinite without one."""
    neighbors = []
    if run.taps is not None:
        taps = run.taps[:, :, neuron] if future else run.taps[:, neuron]
        delays = np.where((taps != 0).any(0), (taps != 0).argmax(0) + 1.0, np.inf)
        neighbors.append((run.name, delays))
    source = None if run.link is None else run.link.source
    if not future and source is not None and source.name in store.runs:
        neighbors.append((source.name, _link_delays(run, neuron, None)))
    if future:
        for other in store.runs.values():
            if other.link is not None and other.link.source is run:
                neighbors.append((other.name, _link_delays(other, None, neuron)))
    return neighbors


def _link_delays(run: SpikeRun, neuron: int | None, source: int | None) -> Array:
    """Return 0 for the connections of a neuron or of a source, infinity for the others."""
    assert run.link is not None
    weight = run.link.weight
    if weight is None:
        weight = np.eye(run.shape[2])
    row = weight[neuron] if source is None else weight[:, source]
    return np.where(row != 0, 0.0, np.inf)
