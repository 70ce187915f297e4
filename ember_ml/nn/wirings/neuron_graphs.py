"""Random graphs of neurons, drawn on the host: one seed gives the same wiring everywhere.

An adjacency matrix is int32, [source, destination]: 1 where a synapse excites, -1 where it
inhibits, 0 where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Wiring = tuple[Any, Any]
"""The synapses among the neurons, and those from the inputs to the neurons."""

_MOSTLY_EXCITING = (-1, 1, 1)


def unconnected(sources: int, destinations: int) -> Any:
    """An adjacency matrix without synapses."""
    return np.zeros((sources, destinations), np.int32)


def fully_connected(units: int, inputs: int, seed: int, self_connections: bool) -> Wiring:
    """Every synapse there can be."""
    rng = np.random.default_rng(seed)
    adjacency, sensory = unconnected(units, units), unconnected(inputs, units)
    for src in range(units):
        for dest in range(units):
            if src != dest or self_connections:
                adjacency[src, dest] = rng.choice(_MOSTLY_EXCITING)
    for src in range(inputs):
        for dest in range(units):
            sensory[src, dest] = rng.choice(_MOSTLY_EXCITING)
    return adjacency, sensory


def random(units: int, inputs: int, sparsity: float, seed: int) -> Wiring:
    """A share of the synapses there can be."""
    rng = np.random.default_rng(seed)
    adjacency, sensory = unconnected(units, units), unconnected(inputs, units)
    for src, dest in _some(rng, units, units, sparsity):
        adjacency[src, dest] = rng.choice(_MOSTLY_EXCITING)
    for src, dest in _some(rng, inputs, units, sparsity):
        rng.choice(_MOSTLY_EXCITING)  # the stream of ncps, which draws twice and keeps the second
        sensory[src, dest] = rng.choice(_MOSTLY_EXCITING)
    return adjacency, sensory


def _some(rng: Any, sources: int, destinations: int, sparsity: float) -> Any:
    count = int(np.round(sources * destinations * (1 - sparsity)))
    pairs = [(src, dest) for src in range(sources) for dest in range(destinations)]
    return rng.choice(pairs, size=count, replace=False)


def layered(
    layers: Sequence[Sequence[int]],
    inputs: int,
    fanouts: Sequence[int],
    recurrent: int,
    motor_fanin: int,
    seed: int,
) -> Wiring:
    """A neural circuit policy.

    Args:
        layers: the neurons of the inter layers, of the command layer and of the motor layer.
        inputs: how many inputs there are.
        fanouts: into how many neurons of the next layer an input leads, and a neuron of each inter
            layer.
        recurrent: how many synapses are drawn within the command layer.
        motor_fanin: how many command neurons a motor neuron listens to.
        seed: of the draws.
    """
    rng = np.random.RandomState(seed)
    *_, command, motor = layers
    units = sum(len(layer) for layer in layers)
    adjacency, sensory = unconnected(units, units), unconnected(inputs, units)
    _spread(rng, sensory, range(inputs), layers[0], fanouts[0])
    for at, fanout in enumerate(fanouts[1:]):
        _spread(rng, adjacency, layers[at], layers[at + 1], fanout)
    for _ in range(recurrent):
        src, dest = rng.choice(command), rng.choice(command)
        adjacency[src, dest] = _sign(rng)
    _spread(rng, adjacency.T, motor, command, motor_fanin)
    return adjacency, sensory


def _spread(rng: Any, matrix: Any, near: Sequence[int], far: Sequence[int], fanout: int) -> None:
    """Lead each of the near into `fanout` of the far; those left out get their share as well."""
    missed = list(far)
    for one in near:
        for other in rng.choice(list(far), size=fanout, replace=False):
            matrix[one, other] = _sign(rng)
            if other in missed:
                missed.remove(other)
    share = int(np.clip(len(near) * fanout // len(far), 1, len(near)))
    for other in missed:
        for one in rng.choice(list(near), size=share, replace=False):
            matrix[one, other] = _sign(rng)


def _sign(rng: Any) -> Any:
    return rng.choice([-1, 1])


def synapses(matrix: Any) -> tuple[list[int], list[int], list[int]]:
    """Sources, destinations and polarities of the synapses, by source, then destination."""
    sources, destinations = np.nonzero(matrix)
    return sources.tolist(), destinations.tolist(), matrix[sources, destinations].tolist()
