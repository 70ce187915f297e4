"""Synapses in bulk: sigmoids of their sources, summed at their destinations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer

Edge = tuple[int, int]
_DENSE = 0.75  # above this share of all pairs, a grid of all of them is quicker than a list
_FEW = 64  # so many synapses cost less in each step of a loop than in a stage of their own


class Strengths(NamedTuple):
    """Of each synapse: the slope and its product with the threshold, and the weights."""

    slope: Tensor
    offset: Tensor
    current: Tensor
    """Conductance times reversal potential."""
    conductance: Tensor


class Synapses(Module):
    r"""Synapses between two groups of neurons.

    .. math:: s_e = \sigma(\sigma_e (v_{src(e)} - \mu_e))

    summed at the destinations with two weights: currents and conductances.

    A list of synapses is read and summed by products with matrices that hold one number a synapse;
    if most pairs are connected, a grid of all pairs is taken.

    Args:
        edges: (place of the source, place of the destination) of each.
        numbers: where their strengths stand.
        sources: how many neurons there are to read.
        destinations: how many neurons the sums are for.
    """

    def __init__(
        self, edges: Sequence[Edge], numbers: Sequence[int], sources: int, destinations: int
    ) -> None:
        self.sources = sources
        self.destinations = destinations
        self.count = len(edges)
        self.is_grid = len(edges) > _DENSE * sources * destinations
        if self.is_grid:
            places = dict(zip(edges, numbers, strict=True))
            grid = [(src, dest) for dest in range(destinations) for src in range(sources)]
            numbers = [places.get(edge, numbers[0]) for edge in grid]
            self.there = _fixed([float(edge in places) for edge in grid])
        elif edges:
            self.origins = _indices([src for src, _ in edges])
            self.targets = _indices([dest for _, dest in edges])
            self.read = _fixed([_unit(src, sources) for src, _ in edges])
            self.write = _fixed(
                [[float(dest == place) for _, dest in edges] for place in range(destinations)]
            )
        self.numbers = _indices(list(numbers))

    def gather(self, strengths: Strengths) -> tuple[Tensor, ...]:
        """The matrices of the strengths: slopes, offsets, and weights."""
        if not self.count:
            return ()
        slope, offset, current, conductance = self._mine(strengths)
        if self.is_grid:
            shape = self.destinations, self.sources
            weights = ops.stack([current * self.there, conductance * self.there], axis=-1)
            return (
                ops.reshape(slope, shape),
                ops.reshape(-offset, shape),
                ops.reshape(weights, (*shape, 2)),
            )
        weights = ops.concat([self.write * current, self.write * conductance], axis=0)
        return self.read * slope[:, None], -offset, weights

    def _mine(self, strengths: Strengths) -> tuple[Tensor, ...]:
        return tuple(ops.take(x, self.numbers, axis=0) for x in strengths)

    def read_all(self, v: Tensor, strengths: Strengths) -> Tensor:
        """The sums for a whole sequence of potentials."""
        if self.is_grid or not self.count:
            return self.forward(v, self.gather(strengths))
        slope, offset, current, conductance = self._mine(strengths)
        weights = ops.stack([current, conductance])
        places = self.origins, self.targets, self.destinations
        return ops.synapses(v, slope, -offset, weights, *places)

    def forward(self, v: Tensor, made: Any) -> Tensor:
        """The sums (..., 2 destinations): currents, then conductances."""
        lead = v.shape[:-1]
        if not self.count:
            return ops.broadcast_to(ops.zeros_like(v[..., :1]), (*lead, 2 * self.destinations))
        slopes, offsets, weights = made
        if not self.is_grid:
            return ops.linear(ops.sigmoid(ops.linear(v, slopes, offsets)), weights)
        s = ops.sigmoid(ops.reshape(v, (-1, 1, self.sources)) * slopes + offsets)
        sums = ops.einsum("nds,dsk->nkd", s, weights)
        return ops.reshape(sums, (*lead, 2 * self.destinations))


def _fixed(values: Any) -> Buffer:
    return Buffer(values, dtype="float32", persistent=False)


def _indices(values: list[int]) -> Buffer:
    return Buffer(values, dtype="int64", persistent=False)


def _unit(place: int, size: int) -> list[float]:
    return [float(at == place) for at in range(size)]


class Stage(NamedTuple):
    """Neurons that are computed together."""

    neurons: list[int]
    loops: bool
    """Whether they depend on each other, so that no step can be done before the last is."""


def stages(units: int, edges: Sequence[Edge]) -> list[Stage]:
    """The neurons in an order in which each stage reads those before it, or itself if it loops.

    What depends on no loop comes first, then all that is in loops or between them, then what leads
    to no loop. Neurons with few synapses to those in loops are computed with them.
    """
    left = set(range(units))
    against = [(dest, src) for src, dest in edges]
    before, after = _peel(left, edges), _peel(left, against)
    if left:
        _merge(left, before, edges)
        _merge(left, after, against)
    core = [Stage(sorted(left), loops=True)] if left else []
    flat = [Stage(level, loops=False) for level in before]
    return flat + core + [Stage(level, loops=False) for level in reversed(after)]


def _peel(left: set[int], edges: Sequence[Edge]) -> list[list[int]]:
    """Take out of `left`, again and again, the neurons that read none of it."""
    levels: list[list[int]] = []
    while True:
        reading = {dest for src, dest in edges if src in left}
        level = sorted(left - reading)
        if not level:
            return levels
        left -= set(level)
        levels.append(level)


def _merge(core: set[int], levels: list[list[int]], edges: Sequence[Edge]) -> None:
    """Put levels back into the core, from the innermost on, while few synapses lead into it."""
    while levels:
        level = set(levels[-1])
        if sum(src in level and dest in core for src, dest in edges) > _FEW:
            return
        core |= set(levels.pop())
