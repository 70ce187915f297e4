"""The mixed memory cell."""

from __future__ import annotations

from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.sequence_mixing.base import TensorPair
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import Entry, HoistedCell, Timespan, Weights
from ember_ml.nn.layers.sequence_mixing.recurrent.gated import GateWeights, LSTMCell


class MixedMemoryCell(HoistedCell[tuple[GateWeights, Weights], tuple[Tensor, Entry]]):
    """Cell whose state passes through an LSTM cell before each step.

    Args:
        cell: The cell. Its state must be a single tensor.

    Shape: that of the cell, with a pair (h, c) as the state.

    Reference: Lechner and Hasani, "Learning long-term dependencies in irregularly-sampled time
    series", 2020.

    Example:
        >>> from ember_ml.nn.layers.sequence_mixing import recurrent
        >>> cell = recurrent.MixedMemoryCell(recurrent.CfCCell(3, 4))
        >>> y, (h, c) = cell(ops.ones((2, 3)))
        >>> y.shape, c.shape
        ((2, 4), (2, 4))
    """

    def __init__(self, cell: HoistedCell[Weights, Entry]) -> None:
        if not isinstance(cell.widths, int):
            raise ArgumentTypeError(
                f"MixedMemoryCell: the state of the cell must be a single tensor; "
                f"{type(cell).__name__} has the widths {cell.widths}"
            )
        self.cell = cell
        self.memory = LSTMCell(cell.in_features, cell.widths)
        self.in_features = cell.in_features
        self.out_features = cell.out_features
        self.widths = (cell.widths, cell.widths)

    def gather(self, timespan: Timespan | None) -> tuple[GateWeights, Weights]:
        """Return the weights of the LSTM and of the cell."""
        return self.memory.gather(timespan), self.cell.gather(timespan)

    def prepare(self, x: Tensor, weights: tuple[GateWeights, Weights]) -> tuple[Tensor, Entry]:
        """Return the contributions of the input to the LSTM and to the cell."""
        return self.memory.prepare(x, weights[0]), self.cell.prepare(x, weights[1])

    def advance(
        self,
        entry: tuple[Tensor, Entry],
        state: TensorPair,
        timespan: Timespan,
        weights: tuple[GateWeights, Weights],
    ) -> TensorPair:
        """Apply the LSTM, and then the cell to the resulting h."""
        h, c = self.memory.advance(entry[0], state, timespan, weights[0])
        return self.cell.advance(entry[1], h, timespan, weights[1]), c

    def output(self, state: TensorPair, weights: tuple[GateWeights, Weights]) -> Tensor:
        """Return the output of the cell."""
        return self.cell.output(state[0], weights[1])
