"""Positions of neurons."""

from __future__ import annotations

import math

import numpy as np

from ember_ml._core.errors import ArgumentError, SpikeError
from ember_ml.autodiff.causal.spikes.dynamics import Array
from ember_ml.autodiff.causal.spikes.events import SpikeEvent
from ember_ml.autodiff.causal.spikes.run import SpikeRun
from ember_ml.autodiff.causal.spikes.store import SpikeStore


def coordinates(run: SpikeRun) -> Array:
    """Return the positions of the neurons of a layer, (neurons, dimensions)."""
    if run.positions is None:
        raise ArgumentError(
            f"the neurons of {run.name!r} have no positions; use a layer with a spatial embedding"
        )
    return run.positions


def position(
    store: SpikeStore, neuron: int | SpikeEvent, layer: str | None = None
) -> tuple[float, ...]:
    """Return the coordinates of a neuron.

    Args:
        store: The recorded runs.
        neuron: Index of the neuron, or one of its spikes.
        layer: Name of the layer, if there are several and the neuron is an index.
    """
    if isinstance(neuron, SpikeEvent):
        run, index = store.run(neuron.layer), neuron.neuron
    else:
        run, index = store.run(layer), neuron
    places = coordinates(run)
    if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
        raise ArgumentError(f"expected the index of a neuron or a spike, not {index!r}")
    if not 0 <= index < len(places):
        raise SpikeError(f"{run.name!r} has the neurons 0 to {len(places) - 1}, not {index}")
    return tuple(float(value) for value in places[index])


def distance(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Return the Euclidean distance between two positions."""
    if len(one) != len(other):
        raise ArgumentError(
            f"positions of {len(one)} and of {len(other)} dimensions have no distance"
        )
    return math.dist(one, other)
