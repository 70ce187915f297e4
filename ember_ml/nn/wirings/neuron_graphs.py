"""Random graphs of neurons, generated on the host: a seed yields the same graph everywhere.

An adjacency matrix is int32, indexed by [source, destination]: 1 for an excitatory synapse, -1 for
an inhibitory one, 0 for none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ember_ml._core import deferred

Matrices = tuple[np.ndarray, np.ndarray]
"""Synapses among the neurons, and from the inputs to the neurons."""

_MOSTLY_EXCITATORY = (-1, 1, 1)


def unconnected(sources: int, destinations: int) -> np.ndarray:
    """Return an adjacency matrix without synapses."""
    deferred.reserve(sources * destinations, f"a wiring of {sources} x {destinations} neurons")
    return np.zeros((sources, destinations), np.int32)


def fully_connected(units: int, inputs: int, seed: int, self_connections: bool) -> Matrices:
    """Return all possible synapses, with random signs."""
    rng = np.random.default_rng(seed)
    adjacency, sensory = unconnected(units, units), unconnected(inputs, units)
    for src in range(units):
        for dest in range(units):
            if src != dest or self_connections:
                adjacency[src, dest] = rng.choice(_MOSTLY_EXCITATORY)
    for src in range(inputs):
        for dest in range(units):
            sensory[src, dest] = rng.choice(_MOSTLY_EXCITATORY)
    return adjacency, sensory


def random(units: int, inputs: int, sparsity: float, seed: int) -> Matrices:
    """Return a random fraction of all possible synapses."""
    rng = np.random.default_rng(seed)
    adjacency, sensory = unconnected(units, units), unconnected(inputs, units)
    for src, dest in _sample(rng, units, units, sparsity):
        adjacency[src, dest] = rng.choice(_MOSTLY_EXCITATORY)
    for src, dest in _sample(rng, inputs, units, sparsity):
        rng.choice(_MOSTLY_EXCITATORY)  # ncps draws twice and uses the second
        sensory[src, dest] = rng.choice(_MOSTLY_EXCITATORY)
    return adjacency, sensory


def _sample(
    rng: np.random.Generator, sources: int, destinations: int, sparsity: float
) -> np.ndarray:
    count = int(np.round(sources * destinations * (1 - sparsity)))
    deferred.reserve(32 * sources * destinations, f"a wiring of {sources} x {destinations} neurons")
    pairs = [(src, dest) for src in range(sources) for dest in range(destinations)]
    return rng.choice(pairs, size=count, replace=False)


def layered(
    layers: Sequence[Sequence[int]],
    inputs: int,
    fanouts: Sequence[int],
    recurrent: int,
    motor_fanin: int,
    seed: int,
) -> Matrices:
    """Return the synapses of a neural circuit policy.

    Args:
        layers: Neurons of the inter layers, of the command layer and of the motor layer.
        inputs: Number of inputs.
        fanouts: Number of neurons of the next layer that an input connects to, and that a neuron of
            each inter layer connects to.
        recurrent: Number of synapses drawn within the command layer.
        motor_fanin: Number of command neurons that connect to a motor neuron.
        seed: Random seed.
    """
    rng = np.random.RandomState(seed)
    *_, command, motor = layers
    units = sum(len(layer) for layer in layers)
    adjacency, sensory = unconnected(units, units), unconnected(inputs, units)
    _spread(rng, sensory, range(inputs), layers[0], fanouts[0])
    for at, fanout in enumerate(fanouts[1:]):
        _spread(rng, adjacency, layers[at], layers[at + 1], fanout)
    deferred.reserve(8 * recurrent, f"a wiring of {recurrent} synapses")
    for _ in range(recurrent):
        src, dest = rng.choice(command), rng.choice(command)
        adjacency[src, dest] = _sign(rng)
    _spread(rng, adjacency.T, motor, command, motor_fanin)
    return adjacency, sensory


def _spread(
    rng: np.random.RandomState,
    matrix: np.ndarray,
    near: Sequence[int],
    far: Sequence[int],
    fanout: int,
) -> None:
    """Connect each near neuron to `fanout` far ones, and every missed far neuron to near ones."""
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


def _sign(rng: np.random.RandomState) -> int:
    return int(rng.choice([-1, 1]))


def synapses(matrix: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Return (source, destination, polarity) triples, by source, then destination."""
    sources, destinations = np.nonzero(matrix)
    polarities = matrix[sources, destinations]
    return zip(sources.tolist(), destinations.tolist(), polarities.tolist(), strict=True)


def reachable(start: Iterable[int], synapses: Iterable[tuple[int, int, int]]) -> set[int]:
    """Return the neurons that can be reached from some neurons, including these."""
    targets = defaultdict(list)
    for source, destination, _ in synapses:
        targets[source].append(destination)
    reached, waiting = set(start), list(start)
    while waiting:
        for destination in targets[waiting.pop()]:
            if destination not in reached:
                reached.add(destination)
                waiting.append(destination)
    return reached
