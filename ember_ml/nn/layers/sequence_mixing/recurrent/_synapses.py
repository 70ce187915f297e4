"""Synapses of liquid cells: sigmoids of their sources, summed at their destinations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ember_ml import ops
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer

Edge: TypeAlias = tuple[int, int]
"""Source and destination of a synapse."""
Matrices: TypeAlias = tuple[Tensor, ...]
"""Slopes, offsets and weights of a group of synapses; empty without synapses."""
_DENSE = 0.75  # above this fraction of all pairs, a dense grid is faster than a list
_FEW = 64  # up to this number, synapses are cheaper within a loop than in a separate stage


class Strengths(NamedTuple):
    """Parameters of the synapses, (synapses,) each."""

    slope: Tensor
    offset: Tensor
    """Slope times threshold."""
    current: Tensor
    """Conductance times reversal potential."""
    conductance: Tensor


class Synapses(Module):
    r"""Synapses between two groups of neurons.

    .. math:: s_e = \sigma(\sigma_e (v_{src(e)} - \mu_e))

    They are summed at the destinations with two weights: currents and conductances.

    Sparse synapses are read and summed by products with matrices that have one entry per synapse.
    If most pairs are connected, a dense grid of all pairs is used.

    Args:
        edges: Source and destination of each synapse, as indices in the two groups.
        numbers: Index of each synapse in the parameters.
        sources: Number of source neurons.
        destinations: Number of destination neurons.
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
            self.exists = _constant([float(edge in places) for edge in grid])
        elif edges:
            self.origins = indices([src for src, _ in edges])
            self.targets = indices([dest for _, dest in edges])
            self.read = _constant([_one_hot(src, sources) for src, _ in edges])
            self.write = _constant(
                [[float(dest == place) for _, dest in edges] for place in range(destinations)]
            )
        self.numbers = indices(list(numbers))

    def gather(self, strengths: Strengths) -> Matrices:
        """Return the slopes, offsets and weights of these synapses as matrices."""
        if not self.count:
            return ()
        slope, offset, current, conductance = self._select(strengths)
        if self.is_grid:
            shape = self.destinations, self.sources
            weights = ops.stack([current * self.exists, conductance * self.exists], axis=-1)
            return (
                ops.reshape(slope, shape),
                ops.reshape(-offset, shape),
                ops.reshape(weights, (*shape, 2)),
            )
        weights = ops.concat([self.write * current, self.write * conductance], axis=0)
        return self.read * slope[:, None], -offset, weights

    def _select(self, strengths: Strengths) -> list[Tensor]:
        return [ops.take(x, self.numbers, axis=0) for x in strengths]

    def read_all(self, v: Tensor, strengths: Strengths) -> Tensor:
        """Return the sums for a sequence of potentials, (batch, time, 2 destinations)."""
        if self.is_grid or not self.count:
            return self.forward(v, self.gather(strengths))
        slope, offset, current, conductance = self._select(strengths)
        weights = ops.stack([current, conductance])
        places = self.origins, self.targets, self.destinations
        return ops.synapses(v, slope, -offset, weights, *places)

    def forward(self, v: Tensor, matrices: Matrices) -> Tensor:
        """Return the sums, (..., 2 destinations): currents, then conductances.

        Args:
            v: Potentials of the sources, (..., sources).
            matrices: The result of `gather`.
        """
        lead = v.shape[:-1]
        if not self.count:
            return ops.broadcast_to(ops.zeros_like(v[..., :1]), (*lead, 2 * self.destinations))
        slopes, offsets, weights = matrices
        if not self.is_grid:
            return ops.linear(ops.sigmoid(ops.linear(v, slopes, offsets)), weights)
        s = ops.sigmoid(ops.reshape(v, (-1, 1, self.sources)) * slopes + offsets)
        sums = ops.einsum("nds,dsk->nkd", s, weights)
        return ops.reshape(sums, (*lead, 2 * self.destinations))


def indices(values: list[int]) -> Buffer:
    """Return a buffer of integers that is not saved."""
    return Buffer(values, dtype="int64", persistent=False)


def _constant(values: TensorLike) -> Buffer:
    return Buffer(values, dtype="float32", persistent=False)


def _one_hot(place: int, size: int) -> list[float]:
    return [float(index == place) for index in range(size)]


class Stage(NamedTuple):
    """Neurons that are computed together."""

    neurons: list[int]
    has_loops: bool
    """Whether the neurons depend on each other, which requires a loop over time."""


def stages(units: int, edges: Sequence[Edge]) -> list[Stage]:
    """Order the neurons in stages that read only earlier stages, or themselves in loops.

    Neurons that depend on no loop come first, then all neurons in or between loops, then neurons
    that lead to no loop. Neurons with few synapses into the loops are computed with them.

    Args:
        units: Number of neurons.
        edges: Source and destination of each synapse.
    """
    left = set(range(units))
    reverse = [(dest, src) for src, dest in edges]
    before, after = _peel(left, edges), _peel(left, reverse)
    if left:
        _merge(left, before, edges)
        _merge(left, after, reverse)
    core = [Stage(sorted(left), has_loops=True)] if left else []
    acyclic = [Stage(level, has_loops=False) for level in before]
    return acyclic + core + [Stage(level, has_loops=False) for level in reversed(after)]


def _peel(left: set[int], edges: Sequence[Edge]) -> list[list[int]]:
    """Repeatedly remove the neurons from `left` that read none of it; return them by level."""
    levels: list[list[int]] = []
    while True:
        reading = {dest for src, dest in edges if src in left}
        level = sorted(left - reading)
        if not level:
            return levels
        left -= set(level)
        levels.append(level)


def _merge(core: set[int], levels: list[list[int]], edges: Sequence[Edge]) -> None:
    """Move levels back into the core, innermost first, while few synapses lead into it."""
    while levels:
        level = set(levels[-1])
        if sum(src in level and dest in core for src, dest in edges) > _FEW:
            return
        core |= set(levels.pop())
