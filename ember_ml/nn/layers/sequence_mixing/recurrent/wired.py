"""Closed-form cells along a wiring."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.sequence_mixing.base import State
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import HoistedCell, Timespan
from ember_ml.nn.layers.sequence_mixing.recurrent.closed_form import CfCCell


class WiredCfCCell(HoistedCell):
    """Closed-form cells without backbones, one for each layer of a wiring.

    Each reads the layer before it, through the synapses of the wiring, and its own state. The state
    has the neurons of the first layer first and those of the last, the outputs, last.

    Args:
        in_features: the features of x.
        wiring: the neurons and their synapses, such as `AutoNCP`.
        mode: "default", "no_gate" or "pure".

    Shape: (batch, in_features), (batch, units) -> (batch, output_dim), (batch, units).

    Example:
        >>> y, h = nn.layers.WiredCfCCell(3, nn.wirings.AutoNCP(16, 4))(ops.ones((2, 3)))
        >>> y.shape, h.shape
        ((2, 4), (2, 16))
    """

    def __init__(self, in_features: int, wiring: Any, mode: str = "default") -> None:
        self.wiring = wiring.copy().build(in_features)
        self.in_features = in_features
        self.out_features = len(self.wiring.layers[-1])
        self.widths = self.wiring.units
        self.sizes = [len(layer) for layer in self.wiring.layers]
        self.cells: list[CfCCell] = []
        before = in_features
        for at, size in enumerate(self.sizes):
            mask = _mask(self.wiring, at)
            self.cells.append(CfCCell(before, size, mode, backbone_layers=0, mask=mask))
            before = size

    def gather(self, timespan: Timespan) -> Any:
        """What each layer's cell gathers."""
        return [cell.gather(timespan) for cell in self.cells]

    def prepare(self, x: Tensor, made: Any) -> Tensor:
        """The input's part of the first layer."""
        return self.cells[0].prepare(x, made[0])

    def advance(self, entry: Any, state: State, timespan: Timespan, made: Any) -> State:
        """The next states of all layers, each of which reads the one before."""
        after: list[Tensor] = []
        for at, (cell, part) in enumerate(zip(self.cells, self._parts(state), strict=True)):
            if at:
                entry = cell.prepare(after[-1], made[at])
            after.append(cell.advance(entry, part, timespan, made[at]))
        return ops.concat(after, axis=-1)

    def _parts(self, state: Tensor) -> list[Tensor]:
        ends = [sum(self.sizes[: at + 1]) for at in range(len(self.sizes) - 1)]
        return ops.split(state, ends, axis=-1) if ends else [state]

    def output(self, state: State, made: Any) -> Tensor:
        """The neurons of the last layer."""
        out: Tensor = state[..., -self.out_features :]
        return out

    def sweep(
        self, x: Tensor, state: State, timespans: Timespan, mask: Tensor | None, made: Any
    ) -> tuple[Tensor, State]:
        """Layer by layer over the whole sequence, for none reads a later one."""
        after = []
        for cell, part, gathered in zip(self.cells, self._parts(state), made, strict=True):
            x, end = cell.sweep(x, part, timespans, mask, gathered)
            after.append(end)
        return x, ops.concat(after, axis=-1)


def _mask(wiring: Any, at: int) -> list[list[float]]:
    """Ones for the synapses into a layer and for those within it, (hidden, before + hidden)."""
    layer = wiring.layers[at]
    into = wiring.sensory_adjacency if at == 0 else wiring.adjacency[wiring.layers[at - 1]]
    return [[float(abs(sign)) for sign in into[:, neuron]] + [1.0] * len(layer) for neuron in layer]
