"""Closed-form continuous-time cells along a wiring."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import HoistedCell, Mask, Timespan
from ember_ml.nn.layers.sequence_mixing.recurrent.closed_form import CfCCell, CfCWeights, Mode
from ember_ml.nn.wirings.base import NeuronWiring


class WiredCfCCell(HoistedCell[list[CfCWeights], Tensor]):
    """CfC cells without backbones, one for each layer of a wiring.

    Each cell reads the previous layer, through the synapses of the wiring, and its own state. The
    state starts with the neurons of the first layer and ends with those of the last, the outputs.

    Args:
        in_features: Number of input features.
        wiring: Neurons and synapses, such as an `AutoNCP`. It is copied.
        mode: "default", "no_gate" or "pure". Default: "default".

    Shape: (batch, in_features), h (batch, units) -> (batch, output_dim), the new h.

    Example:
        >>> y, h = nn.layers.WiredCfCCell(3, nn.wirings.AutoNCP(16, 4))(ops.ones((2, 3)))
        >>> y.shape, h.shape
        ((2, 4), (2, 16))
    """

    def __init__(self, in_features: int, wiring: NeuronWiring, mode: Mode = "default") -> None:
        self.wiring = wiring.copy().build(in_features)
        self.in_features = in_features
        self.out_features = len(self.wiring.layers[-1])
        self.widths = self.wiring.units
        self.sizes = [len(layer) for layer in self.wiring.layers]
        self.cells: list[CfCCell] = []
        previous = in_features
        for index, size in enumerate(self.sizes):
            mask = _mask(self.wiring, index)
            self.cells.append(CfCCell(previous, size, mode, backbone_layers=0, mask=mask))
            previous = size

    def gather(self, timespan: Timespan | None) -> list[CfCWeights]:
        """Return the weights of each cell."""
        return [cell.gather(timespan) for cell in self.cells]

    def prepare(self, x: Tensor, weights: list[CfCWeights]) -> Tensor:
        """Return the contribution of the input to the first layer."""
        return self.cells[0].prepare(x, weights[0])

    def advance(
        self, entry: Tensor, state: Tensor, timespan: Timespan, weights: list[CfCWeights]
    ) -> Tensor:
        """Return the next states of all layers."""
        after: list[Tensor] = []
        for index, (cell, part) in enumerate(zip(self.cells, self._split(state), strict=True)):
            if index:
                entry = cell.prepare(after[-1], weights[index])
            after.append(cell.advance(entry, part, timespan, weights[index]))
        return ops.concat(after, axis=-1)

    def _split(self, state: Tensor) -> list[Tensor]:
        """Return the state of each layer."""
        ends = [sum(self.sizes[: index + 1]) for index in range(len(self.sizes) - 1)]
        return ops.split(state, ends, axis=-1) if ends else [state]

    def output(self, state: Tensor, weights: list[CfCWeights]) -> Tensor:
        """Return the neurons of the last layer."""
        return state[..., -self.out_features :]

    def sweep(
        self, x: Tensor, state: Tensor, timespans: Timespan, mask: Mask, weights: list[CfCWeights]
    ) -> tuple[Tensor, Tensor]:
        """Run each layer over the whole sequence, because none reads a later layer."""
        after = []
        for cell, part, cell_weights in zip(self.cells, self._split(state), weights, strict=True):
            x, end = cell.sweep(x, part, timespans, mask, cell_weights)
            after.append(end)
        return x, ops.concat(after, axis=-1)


def _mask(wiring: NeuronWiring, index: int) -> list[list[float]]:
    """Return 1 for the synapses into a layer and within it, (hidden, previous + hidden)."""
    layer = wiring.layers[index]
    previous = wiring.layers[index - 1]
    synapses = wiring.sensory_adjacency if index == 0 else wiring.adjacency[previous]
    return [
        [float(abs(sign)) for sign in synapses[:, neuron]] + [1.0] * len(layer) for neuron in layer
    ]
