"""A memory cell beside another cell."""

from __future__ import annotations

from typing import Any

from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.sequence_mixing.base import State
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import HoistedCell, Timespan
from ember_ml.nn.layers.sequence_mixing.recurrent.gated import LSTMCell


class MixedMemoryCell(HoistedCell):
    """A cell whose state passes through a long short-term memory before each step.

    Args:
        cell: the cell; its state is one tensor.

    Shape: as the cell, with a state of a pair.

    Reference: Lechner and Hasani, "Learning long-term dependencies in irregularly-sampled time
    series", 2020.

    Example:
        >>> from ember_ml.nn.layers.sequence_mixing import recurrent
        >>> cell = recurrent.MixedMemoryCell(recurrent.CfCCell(3, 4))
        >>> y, (h, c) = cell(ops.ones((2, 3)))
        >>> y.shape, c.shape
        ((2, 4), (2, 4))
    """

    def __init__(self, cell: HoistedCell) -> None:
        self.cell = cell
        self.memory = LSTMCell(cell.in_features, cell.widths)
        self.in_features = cell.in_features
        self.out_features = cell.out_features
        self.widths = (cell.widths, cell.widths)

    def gather(self, timespan: Timespan) -> Any:
        """What the memory and the cell gather."""
        return self.memory.gather(timespan), self.cell.gather(timespan)

    def prepare(self, x: Tensor, made: Any) -> Any:
        """What the memory and the cell make of the input."""
        return self.memory.prepare(x, made[0]), self.cell.prepare(x, made[1])

    def advance(self, entry: Any, state: State, timespan: Timespan, made: Any) -> State:
        """The memory's step, then the cell's from the state that it gave."""
        h, c = self.memory.advance(entry[0], state, timespan, made[0])
        return self.cell.advance(entry[1], h, timespan, made[1]), c

    def output(self, state: State, made: Any) -> Tensor:
        """What is seen of the cell's state."""
        return self.cell.output(state[0], made[1])
