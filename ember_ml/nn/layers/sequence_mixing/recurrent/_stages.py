"""Liquid cells over a whole sequence, stage by stage.

Time runs in substeps: substep k takes the potentials v_k to v_{k+1}. A neuron outside of loops
reads potentials that are already known for all substeps. Its own potentials are then a linear
recurrence, v_{k+1} = a_k v_k + b_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.sequence_mixing.recurrent._synapses import (
    Edge,
    Matrices,
    Stage,
    Strengths,
    Synapses,
    indices,
    stages,
)
from ember_ml.nn.module import Module


class LiquidWeights(TypedDict):
    """Weights of a liquid cell, as used within a sequence."""

    capacity: Tensor
    current: Tensor
    conductance: Tensor
    input: tuple[Tensor | None, Tensor | None]
    output: tuple[Tensor | None, Tensor | None]
    strengths: Strengths
    sensory_strengths: Strengths
    matrices: NotRequired[Matrices]


class Staged(Module):
    """Neurons of a wiring in stages, and the synapses that each stage reads.

    Args:
        units: Number of neurons.
        edges: Source and destination of the synapses, in the order of their parameters.
        sensory: Source and destination of the synapses from the inputs.
        inputs: Number of inputs.
        outputs: Number of output neurons, which are the first ones.
    """

    def __init__(
        self, units: int, edges: Sequence[Edge], sensory: Sequence[Edge], inputs: int, outputs: int
    ) -> None:
        self.stages = stages(units, edges)
        order = [neuron for stage in self.stages for neuron in stage.neurons]
        place = {neuron: index for index, neuron in enumerate(order)}
        self.order = indices(order)
        self.inverse = indices([place[neuron] for neuron in range(units)])
        self.outputs = indices([place[neuron] for neuron in range(outputs)])
        self.sensory = _synapses_between(sensory, {index: index for index in range(inputs)}, place)
        self.into: list[Synapses | None] = []
        self.within: list[Synapses | None] = []
        start = 0
        for stage in self.stages:
            known = {neuron: place[neuron] for neuron in order[:start]}
            own = {neuron: index for index, neuron in enumerate(stage.neurons)}
            self.into.append(_synapses_between(edges, known, own) if known else None)
            self.within.append(_synapses_between(edges, own, own) if stage.has_loops else None)
            start += len(own)

    def forward(
        self,
        x: Tensor,
        state: Tensor,
        d: Tensor | None,
        mask: Tensor | None,
        weights: LiquidWeights,
        unfolds: int,
    ) -> tuple[Tensor, Tensor]:
        """Return the potentials of the output neurons after each step, and of all at the end.

        Args:
            x: Inputs, (batch, time, inputs).
            state: Initial potentials, (batch, units).
            d: Duration of a substep, (batch or 1, time, 1). None: it is included in the weights.
            mask: (batch, time), False where the potentials do not change.
            weights: Weights of the cell.
            unfolds: Number of substeps per step.
        """
        run = _Run(self, state, d, mask, weights, unfolds)
        sums = self.sensory.read_all(x, weights["sensory_strengths"])
        constants = [
            ops.take(leak, self.order) for leak in (weights["current"], weights["conductance"])
        ]
        sums = sums + ops.concat(constants)
        start = 0
        for stage, into, within in zip(self.stages, self.into, self.within, strict=True):
            run.stage(stage, into, within, sums, start)
            start += len(stage.neurons)
        ends = ops.concat(run.ends, axis=-1)
        last = ops.take(ends[:, -1], self.inverse, axis=-1)
        return ops.take(ends, self.outputs, axis=-1), last


class _Run:
    """One pass over a sequence."""

    def __init__(
        self,
        staged: Staged,
        state: Tensor,
        d: Tensor | None,
        mask: Tensor | None,
        weights: LiquidWeights,
        unfolds: int,
    ) -> None:
        self.state = ops.take(state, staged.order, axis=-1)
        self.capacity = ops.take(weights["capacity"], staged.order)
        self.strengths = weights["strengths"]
        self.unfolds = unfolds
        self.d = d
        self.mask = None if mask is None else mask[:, :, None]
        self.known: list[Tensor] = []
        self.ends: list[Tensor] = []

    def stage(
        self,
        stage: Stage,
        into: Synapses | None,
        within: Synapses | None,
        inputs: Tensor,
        start: int,
    ) -> None:
        """Compute the potentials of a stage and append them to the known ones."""
        units, stop = self.capacity.shape[0], start + len(stage.neurons)
        sums = ops.concat([inputs[..., start:stop], inputs[..., units + start : units + stop]], -1)
        capacity, before = self.capacity[start:stop], self.state[:, start:stop]
        if within is not None:
            sums = self._add_known(self._repeat(sums), into)
            after = self._loop(sums, capacity, before, within)
        elif into is not None:
            sums = self._add_known(self._repeat(sums), into)
            d, mask = self._repeat_optional(self.d), self._repeat_optional(self.mask)
            after = ops.linear_recurrence(*self._factors(sums, capacity, d, mask), before)[0]
        else:
            a, b = self._factors(sums, capacity, self.d, self.mask)
            after = ops.linear_recurrence(self._repeat(a), self._repeat(b), before)[0]
        self.ends.append(after[:, self.unfolds - 1 :: self.unfolds])
        self.known.append(ops.concat([before[:, None], after[:, :-1]], axis=1))

    def _repeat(self, x: Tensor) -> Tensor:
        """Repeat the values of each step for its substeps."""
        return ops.repeat(x, self.unfolds, axis=1)

    def _repeat_optional(self, x: Tensor | None) -> Tensor | None:
        return None if x is None else self._repeat(x)

    def _add_known(self, sums: Tensor, into: Synapses | None) -> Tensor:
        """Add the contributions of the neurons of earlier stages."""
        if into is None:
            return sums
        known = self.known[0] if len(self.known) == 1 else ops.concat(self.known, axis=-1)
        return sums + into.read_all(known, self.strengths)

    def _factors(
        self, sums: Tensor, capacity: Tensor, d: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the factors a and entries b of the recurrence of neurons outside of loops."""
        size = capacity.shape[0]
        sums = sums if d is None else sums * d
        denominator = sums[..., size:] + capacity
        a, b = capacity / denominator, sums[..., :size] / denominator
        if mask is None:
            return a, b
        return ops.where(mask, a, 1.0), ops.where(mask, b, 0.0)

    def _loop(self, sums: Tensor, capacity: Tensor, v: Tensor, within: Synapses) -> Tensor:
        """Return the potentials of neurons in loops after each substep."""
        size, length, matrices = capacity.shape[0], sums.shape[1], within.gather(self.strengths)
        if self.d is None and self.mask is None and not within.is_grid:
            return ops.liquid(sums, v, capacity, *matrices)
        nothing: list[Tensor | None] = [None] * length
        spans = nothing if self.d is None else ops.unstack(self._repeat(self.d), 1)
        masks = nothing if self.mask is None else ops.unstack(self._repeat(self.mask), 1)
        after = []
        for entry, d, is_real in zip(ops.unstack(sums, 1), spans, masks, strict=True):
            total = entry + within(v, matrices)
            total = total if d is None else total * d
            new = (capacity * v + total[:, :size]) / (capacity + total[:, size:])
            v = new if is_real is None else ops.where(is_real, new, v)
            after.append(v)
        return ops.stack(after, axis=1)


def _synapses_between(
    edges: Sequence[Edge], sources: dict[int, int], destinations: dict[int, int]
) -> Synapses:
    """Create the synapses between two groups of neurons, given as neuron -> index."""
    numbers = [
        number
        for number, (src, dest) in enumerate(edges)
        if src in sources and dest in destinations
    ]
    places = [(sources[edges[number][0]], destinations[edges[number][1]]) for number in numbers]
    return Synapses(places, numbers, len(sources), len(destinations))
