"""Influence of spikes on each other, along paths of synapses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ember_ml._core import numbers
from ember_ml.autodiff.causal.spikes.causes import decompose
from ember_ml.autodiff.causal.spikes.dynamics import Array
from ember_ml.autodiff.causal.spikes.events import Related, SpikeEvent
from ember_ml.autodiff.causal.spikes.run import SpikeRun
from ember_ml.autodiff.causal.spikes.store import SpikeStore


def influence(store: SpikeStore, cause: SpikeEvent, effect: SpikeEvent) -> float:
    """Return the influence of a spike on a later one: the sum over all paths of their shares.

    Args:
        store: The recorded runs.
        cause: The earlier spike, or an input spike of a layer.
        effect: The later spike.
    """
    store.check(cause)
    store.find(effect)
    if cause == effect:
        return 1.0
    if cause.batch != effect.batch or cause.time > effect.time:
        return 0.0
    walk = backward(store, effect, None, 0.0, cause.time)
    return next((one.influence for one in walk if one.event == cause), 0.0)


def ancestors(
    store: SpikeStore, event: SpikeEvent, depth: int | None, min_influence: float
) -> list[Related]:
    """Return a spike and the spikes that led to it, the latest first.

    Args:
        store: The recorded runs.
        event: The spike.
        depth: Maximum number of synapses on a path; None for no limit.
        min_influence: Spikes with less influence, and paths through them, are left out.
    """
    _check_limits(depth, min_influence)
    store.find(event)
    return list(backward(store, event, depth, min_influence, 0))


def backward(
    store: SpikeStore, event: SpikeEvent, depth: int | None, min_influence: float, start: int
) -> Iterator[Related]:
    """Yield a spike and those that led to it with their influence, the latest first.

    All effects of a spike come before it, so its influence is complete when it is reached.

    Args:
        store: The recorded runs.
        event: The spike.
        depth: Maximum number of synapses on a path; None for no limit.
        min_influence: Spikes with less influence, and paths through them, are left out.
        start: First step to go back to.
    """
    weights = Weights(store, depth)
    weights.of(event.layer)[:, event.time, event.neuron] = _unit(depth)
    for time in range(event.time, start - 1, -1):
        for layer in reversed(weights.layers):
            totals = weights.of(layer)[:, time].sum(0)
            for neuron in np.flatnonzero((totals > 0.0) & (totals >= min_influence)):
                one = SpikeEvent(layer, event.batch, time, int(neuron))
                yield Related(one, float(totals[neuron]))
                run = store.runs.get(layer)
                index = None if run is None else run.index(one)
                if run is not None and index is not None:
                    _spread(weights, run, index, weights.of(layer)[:, time, neuron])


def _spread(weights: Weights, run: SpikeRun, index: int, own: Array) -> None:
    """Add the influence of a spike's causes, from its own."""
    longer = _step(own, weights.depth)
    if not longer.any():
        return
    parts = decompose(run, index)
    for part in parts.arrivals:
        shares = np.abs(part.contributions) / parts.magnitude
        weights.of(part.layer)[:, part.times, part.neurons] += longer[:, None] * shares


def descendants(
    store: SpikeStore, event: SpikeEvent, depth: int | None, min_influence: float
) -> list[Related]:
    """Return the spikes that followed from a spike, the earliest first.

    Args:
        store: The recorded runs.
        event: The spike.
        depth: Maximum number of synapses on a path; None for no limit.
        min_influence: Spikes that it influences less, and paths through them, are left out.
    """
    _check_limits(depth, min_influence)
    store.check(event)
    weights = Weights(store, depth)
    weights.of(event.layer)[:, event.time, event.neuron] = _unit(depth)
    order = {name: at for at, name in enumerate(store.runs)}
    later = [one for run in store.runs.values() for one in run.events(event.batch, event.time)]
    later.sort(key=lambda one: (one.time, order[one.layer]))
    related = []
    total, latest = 1.0, event.time
    for one in later:
        run = store.runs[one.layer]
        if one == event or _bound(run, total, one.time - latest) < min_influence:
            continue
        value = _received(weights, run, one)
        if value > 0.0 and value >= min_influence:
            related.append(Related(one, value))
            total, latest = total + value, one.time
        else:
            weights.of(one.layer)[:, one.time, one.neuron] = 0.0
    return related


def _received(weights: Weights, run: SpikeRun, event: SpikeEvent) -> float:
    """Set the influence on a spike from those on its causes; return the sum over all lengths."""
    index = run.index(event)
    assert index is not None
    parts = decompose(run, index)
    own = weights.of(event.layer)[:, event.time, event.neuron]
    for part in parts.arrivals:
        shares = np.abs(part.contributions) / parts.magnitude
        before = weights.of(part.layer)[:, part.times, part.neurons]
        own += _step((before * shares).sum(1), weights.depth)
    return float(own.sum())


def _bound(run: SpikeRun, total: float, elapsed: int) -> float:
    """Return an upper bound of the influence on a spike, some steps after the latest cause.

    A share is at most |weight| decay^lag / threshold, because the contributions sum to more than
    the threshold.
    """
    dynamics = run.dynamics
    if run.taps is None or run.link is not None or dynamics.alpha is not None:
        return np.inf
    lag = elapsed - len(run.taps)
    if dynamics.refractory or run.mask is not None or lag <= 0:
        return np.inf
    largest = float(np.abs(run.taps).sum(0).max())
    smallest = float(dynamics.threshold.min())
    return total * largest * float(dynamics.beta.max()) ** lag / smallest


class Weights:
    """Influence of each spike of a batch row, by layer and number of synapses on the path.

    Args:
        store: The recorded runs.
        depth: Maximum number of synapses on a path; None for no limit.

    Attributes:
        layers: Names of the layers, inputs before the layers that they drive.
    """

    def __init__(self, store: SpikeStore, depth: int | None) -> None:
        self.depth = depth
        shapes: dict[str, tuple[int, int]] = {}
        for name, run in store.runs.items():
            if run.link is not None:
                shapes.setdefault(run.link.name, (run.shape[1], run.link.inputs.shape[2]))
            shapes[name] = run.shape[1:]
        self.layers = list(shapes)
        self._shapes = shapes
        self._arrays: dict[str, Array] = {}

    def of(self, layer: str) -> Array:
        """Return the influence of the spikes of a layer, (lengths of paths, steps, neurons)."""
        if layer not in self._arrays:
            lengths = 1 if self.depth is None else self.depth + 1
            self._arrays[layer] = np.zeros((lengths, *self._shapes[layer]))
        return self._arrays[layer]


def _unit(depth: int | None) -> Array:
    """Return the weights of the paths of 0, 1, ... synapses; one number without a limit."""
    weights = np.zeros(1 if depth is None else depth + 1)
    weights[0] = 1.0
    return weights


def _step(weights: Array, depth: int | None) -> Array:
    """Return the weights of the paths that are longer by one synapse."""
    return weights if depth is None else np.concatenate([[0.0], weights[:-1]])


def _check_limits(depth: int | None, min_influence: float) -> None:
    if depth is not None:
        numbers.count("CausalContext", "depth", depth)
    numbers.fraction("CausalContext", "min_influence", min_influence)
