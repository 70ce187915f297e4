"""Influence of spikes on each other, along paths of synapses."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from ember_ml._core.errors import ArgumentError
from ember_ml.autodiff.causal.spikes.causes import decompose
from ember_ml.autodiff.causal.spikes.dynamics import Array
from ember_ml.autodiff.causal.spikes.events import Related, SpikeEvent
from ember_ml.autodiff.causal.spikes.store import SpikeStore


def shares(store: SpikeStore, event: SpikeEvent) -> Iterator[tuple[SpikeEvent, float]]:
    """Yield the direct causes of a spike with their shares of its voltage.

    The share is the absolute contribution divided by the sum of all absolute contributions.
    """
    run, index = store.find(event)
    parts = decompose(run, index)
    magnitude = parts.magnitude
    for part in parts.arrivals:
        values = np.abs(part.contributions) / magnitude
        for time, neuron, value in zip(part.times, part.neurons, values, strict=True):
            yield SpikeEvent(part.layer, event.batch, int(time), int(neuron)), float(value)


def influence(store: SpikeStore, cause: SpikeEvent, effect: SpikeEvent) -> float:
    """Return the influence of a spike on a later one: the sum over all paths of their shares.

    Args:
        store: The recorded runs.
        cause: The earlier spike, or an input spike of a layer.
        effect: The later spike.
    """
    if not _is_input(store, cause):
        store.find(cause)
    store.find(effect)
    if cause == effect:
        return 1.0
    if cause.batch != effect.batch or cause.time > effect.time:
        return 0.0
    walk = _Walk(store, effect, None, 0.0, cause.time)
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
    _check(depth, min_influence)
    store.find(event)
    return list(_Walk(store, event, depth, min_influence, 0))


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
    _check(depth, min_influence)
    if not _is_input(store, event):
        store.find(event)
    weights = {event: _unit(depth)}
    order = {name: at for at, name in enumerate(store.runs)}
    later = [
        one
        for run in store.runs.values()
        for one in run.events(event.batch, event.time)
        if one != event
    ]
    later.sort(key=lambda one: (one.time, order[one.layer]))
    related = []
    for one in later:
        total = _unit(depth) * 0.0
        for cause, share in shares(store, one):
            if cause in weights:
                total = total + _step(weights[cause], depth) * share
        value = float(total.sum())
        if value > 0.0 and value >= min_influence:
            weights[one] = total
            related.append(Related(one, value))
    return related


class _Walk:
    """Spikes that led to another one with their influence, from the latest to the earliest.

    All effects of a spike come before it, so its influence is complete when it is reached.
    """

    def __init__(
        self,
        store: SpikeStore,
        event: SpikeEvent,
        depth: int | None,
        min_influence: float,
        start: int,
    ) -> None:
        self._store = store
        self._depth = depth
        self._min = min_influence
        self._start = start
        self._order = {name: -at for at, name in enumerate(store.runs)}
        self._weights = {event: _unit(depth)}
        self._heap = [self._key(event)]

    def _key(self, event: SpikeEvent) -> tuple[int, int, SpikeEvent]:
        return -event.time, self._order.get(event.layer, 1), event

    def __iter__(self) -> Iterator[Related]:
        while self._heap:
            *_, event = heapq.heappop(self._heap)
            weight = self._weights.pop(event)
            value = float(weight.sum())
            if value < self._min or value <= 0.0:
                continue
            yield Related(event, value)
            if self._can_expand(event):
                self._expand(event, _step(weight, self._depth))

    def _can_expand(self, event: SpikeEvent) -> bool:
        run = self._store.runs.get(event.layer)
        return run is not None and run.index(event) is not None

    def _expand(self, event: SpikeEvent, weight: Array) -> None:
        if not weight.any():
            return
        for cause, share in shares(self._store, event):
            if cause.time < self._start:
                continue
            if cause not in self._weights:
                self._weights[cause] = weight * share
                heapq.heappush(self._heap, self._key(cause))
            else:
                self._weights[cause] = self._weights[cause] + weight * share


def _unit(depth: int | None) -> Array:
    """Return the weights of the paths of 0, 1, ... synapses; one number without a limit."""
    weights = np.zeros(1 if depth is None else depth + 1)
    weights[0] = 1.0
    return weights


def _step(weights: Array, depth: int | None) -> Array:
    """Return the weights of the paths that are longer by one synapse."""
    return weights if depth is None else np.concatenate([[0.0], weights[:-1]])


def _is_input(store: SpikeStore, event: SpikeEvent) -> bool:
    """Return whether an event is an input of a recorded layer."""
    layers = {run.link.name for run in store.runs.values() if run.link is not None}
    return isinstance(event, SpikeEvent) and event.layer in layers - set(store.runs)


def _check(depth: int | None, min_influence: float) -> None:
    if depth is not None and depth < 0:
        raise ArgumentError(f"depth must be at least 0, not {depth}")
    if not 0.0 <= min_influence <= 1.0:
        raise ArgumentError(f"min_influence must be from 0 to 1, not {min_influence}")
