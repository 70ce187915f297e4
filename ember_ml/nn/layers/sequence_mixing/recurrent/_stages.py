"""Liquid cells over a whole sequence, stage by stage.

Time runs in parts of steps: part k of the sequence takes the potentials v_k to v_{k+1}. A neuron
in no loop reads potentials that are known already for all parts: its own are then a linear
recurrence, v_{k+1} = a_k v_k + b_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.sequence_mixing.recurrent._synapses import Edge, Stage, Synapses, stages
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer


class Staged(Module):
    """The neurons of a wiring in stages, and the synapses that each of them reads.

    Args:
        units: how many neurons there are.
        edges: (source, destination) of the synapses, in the order of their strengths.
        sensory: the same of the synapses from the inputs.
        inputs: how many inputs there are.
        outputs: how many of the neurons, the first ones, are seen.
    """

    def __init__(
        self, units: int, edges: Sequence[Edge], sensory: Sequence[Edge], inputs: int, outputs: int
    ) -> None:
        self.stages = stages(units, edges)
        order = [neuron for stage in self.stages for neuron in stage.neurons]
        place = {neuron: at for at, neuron in enumerate(order)}
        self.order = _indices(order)
        self.inverse = _indices([place[neuron] for neuron in range(units)])
        self.seen = _indices([place[neuron] for neuron in range(outputs)])
        self.sensory = _group(sensory, {at: at for at in range(inputs)}, place)
        self.into: list[Synapses | None] = []
        self.within: list[Synapses | None] = []
        start = 0
        for stage in self.stages:
            known = {neuron: place[neuron] for neuron in order[:start]}
            own = {neuron: at for at, neuron in enumerate(stage.neurons)}
            self.into.append(_group(edges, known, own) if known else None)
            self.within.append(_group(edges, own, own) if stage.loops else None)
            start += len(own)

    def forward(
        self, x: Tensor, state: Tensor, d: Any, mask: Tensor | None, made: Any, unfolds: int
    ) -> tuple[Tensor, Tensor]:
        """The potentials of the neurons seen after each step, and of all after the last.

        Args:
            x: (batch, time, inputs).
            state: (batch, units), the potentials before.
            d: the time of a part of a step, (batch or 1, time, 1), if it is not in `made`.
            mask: (batch, time), False where the potentials stay.
            made: what the cell gathered.
            unfolds: the parts of a step.
        """
        run = _Run(self, state, d, mask, made, unfolds)
        inputs = self.sensory.read_all(x, made["sensory_strengths"])
        constants = [ops.take(made[name], self.order) for name in ("current", "conductance")]
        inputs = inputs + ops.concat(constants)
        start = 0
        for stage, into, within in zip(self.stages, self.into, self.within, strict=True):
            run.stage(stage, into, within, inputs, start)
            start += len(stage.neurons)
        ends = ops.concat(run.ends, axis=-1)
        last = ops.take(ends[:, -1], self.inverse, axis=-1)
        return ops.take(ends, self.seen, axis=-1), last


class _Run:
    """One pass over a sequence."""

    def __init__(
        self, staged: Staged, state: Tensor, d: Any, mask: Tensor | None, made: Any, unfolds: int
    ) -> None:
        self.state = ops.take(state, staged.order, axis=-1)
        self.capacity = ops.take(made["capacity"], staged.order)
        self.strengths = made["strengths"]
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
        """Compute the potentials of a stage, and add them to those known."""
        units, stop = self.capacity.shape[0], start + len(stage.neurons)
        sums = ops.concat([inputs[..., start:stop], inputs[..., units + start : units + stop]], -1)
        capacity, before = self.capacity[start:stop], self.state[:, start:stop]
        if within is not None:
            sums = self._read(self._parts(sums), into)
            after = self._loop(sums, capacity, before, within)
        elif into is not None:
            sums = self._read(self._parts(sums), into)
            factors = self._factors(sums, capacity, self._parts(self.d), self._parts(self.mask))
            after = ops.linear_recurrence(*factors, before)[0]
        else:
            a, b = self._factors(sums, capacity, self.d, self.mask)
            after = ops.linear_recurrence(self._parts(a), self._parts(b), before)[0]
        self.ends.append(after[:, self.unfolds - 1 :: self.unfolds])
        self.known.append(ops.concat([before[:, None], after[:, :-1]], axis=1))

    def _parts(self, x: Any) -> Any:
        """What holds for each step, for each part of it."""
        return None if x is None else ops.repeat(x, self.unfolds, axis=1)

    def _read(self, sums: Tensor, into: Synapses | None) -> Tensor:
        if into is None:
            return sums
        known = self.known[0] if len(self.known) == 1 else ops.concat(self.known, axis=-1)
        return sums + into.read_all(known, self.strengths)

    def _factors(
        self, sums: Tensor, capacity: Tensor, d: Any, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The factors and entries of the recurrence of neurons that read none of their own."""
        size = capacity.shape[0]
        sums = sums if d is None else sums * d
        denominator = sums[..., size:] + capacity
        a, b = capacity / denominator, sums[..., :size] / denominator
        if mask is None:
            return a, b
        return ops.where(mask, a, 1.0), ops.where(mask, b, 0.0)

    def _loop(self, sums: Tensor, capacity: Tensor, v: Tensor, within: Synapses) -> Tensor:
        """The potentials of neurons in loops after each part, step by step."""
        size, length, matrices = capacity.shape[0], sums.shape[1], within.gather(self.strengths)
        if self.d is None and self.mask is None and not within.is_grid:
            return ops.liquid(sums, v, capacity, *matrices)
        spans = [None] * length if self.d is None else ops.unstack(self._parts(self.d), 1)
        masks = [None] * length if self.mask is None else ops.unstack(self._parts(self.mask), 1)
        after = []
        for entry, d, real in zip(ops.unstack(sums, 1), spans, masks, strict=True):
            both = entry + within(v, matrices)
            both = both if d is None else both * d
            new = (capacity * v + both[:, :size]) / (capacity + both[:, size:])
            v = new if real is None else ops.where(real, new, v)
            after.append(v)
        return ops.stack(after, axis=1)


def _indices(values: list[int]) -> Buffer:
    return Buffer(values, dtype="int64", persistent=False)


def _group(edges: Sequence[Edge], sources: dict[int, int], own: dict[int, int]) -> Synapses:
    """The synapses between two groups of neurons, which are given with their places."""
    numbers = [at for at, (src, dest) in enumerate(edges) if src in sources and dest in own]
    places = [(sources[edges[at][0]], own[edges[at][1]]) for at in numbers]
    return Synapses(places, numbers, len(sources), len(own))
