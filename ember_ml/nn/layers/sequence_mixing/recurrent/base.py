"""The layer around recurrent cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml._core.types import Tree
from ember_ml.nn.layers.channel_mixing import Dense, Dropout
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import RecurrentCell, Timespan
from ember_ml.nn.sequence_module import check_state


class Recurrent(SequenceMixer):
    """Layer that runs one recurrent cell, or a stack of cells, over a sequence.

    `run` takes and returns the state like a call with a state. The state of one cell is the state
    of the layer. Several cells have a tuple of states, layer by layer, forward before backward.

    Where the mask is False the state does not change, and the previous output is repeated.

    Args:
        cells: The cell, or one cell per layer.
        backward: One cell per layer for the backward direction; the outputs of both directions are
            concatenated. Default: none.
        dropout: Probability of zeroing an output of any layer but the last during training.
            Default: 0.
        return_sequences: Whether to return all outputs or only the last. Default: True.
        proj_size: Number of features of a linear projection of the outputs. Default: none.

    Shape: (batch, time, features) -> (batch, time, out_features), or without the batch axis.
    """

    uses_timespans = True

    def __init__(
        self,
        cells: RecurrentCell | Sequence[RecurrentCell],
        backward: RecurrentCell | Sequence[RecurrentCell] = (),
        dropout: float = 0.0,
        return_sequences: bool = True,
        proj_size: int | None = None,
    ) -> None:
        self.cells = _as_list(cells)
        self.backward_cells = _as_list(backward)
        if len(self.backward_cells) not in (0, len(self.cells)):
            raise ArgumentError(
                f"{type(self).__name__}: the number of backward cells "
                f"({len(self.backward_cells)}) must be 0 or the number of layers "
                f"({len(self.cells)})"
            )
        self.is_causal = not len(self.backward_cells)
        self.dropout = Dropout(dropout) if dropout else None
        self.return_sequences = return_sequences
        self.features: int = self.cells[0].in_features
        self.out_features = sum(cell.out_features for cell in self._layer(len(self.cells) - 1))
        self.projection: Dense | None = None
        if proj_size is not None:
            self.projection = Dense(self.out_features, proj_size)
            self.out_features = proj_size

    def _layer(self, index: int) -> list[RecurrentCell]:
        """Return the cells of a layer, one per direction."""
        return [self.cells[index], *self.backward_cells[index : index + 1]]

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
    ) -> Any:
        """Return the outputs; with a state, also the state after the last position.

        Args:
            x: Input, (batch, time, features) or (time, features).
            mask: (batch, time), False for padding.
            timespans: Time since the previous position: a number, (time,) or (batch, time).
                Default: 1.
            state: State before the first position. Default: zeros.
        """
        if state is None:
            return self.run(x, None, timespans, mask)[0]
        if not self.is_causal:
            raise NotImplementedError(
                f"{type(self).__name__}: a bidirectional layer needs the whole sequence; call it "
                "without a state, or run() for the last states of both directions"
            )
        return self.run(x, state, timespans, mask)

    def run(
        self,
        x: Tensor,
        state: State | None = None,
        timespans: TensorLike | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """Return the outputs and the state after the last position.

        Args:
            x: Input, (batch, time, features) or (time, features).
            state: State before the first position. Default: zeros.
            timespans: Time since the previous position: a number, (time,) or (batch, time).
                Default: 1.
            mask: (batch, time), False for padding.
        """
        self.check_tensor(x)
        if x.ndim == 2:
            return self._run_unbatched(x, state, timespans, mask)
        self.check_sequence(x, mask)
        spans = self._timespans(x, timespans)
        states = self._states(x.shape[0], state)
        y = x
        next_states: list[State] = []
        for index in range(len(self.cells)):
            if index and self.dropout is not None:
                y = self.dropout(y)
            all_outputs = self.return_sequences or index < len(self.cells) - 1
            y, layer_states = self._run_layer(index, y, states, spans, mask, all_outputs)
            next_states += layer_states
        y = y if self.projection is None else self.projection(y)
        return y, _unwrap_single(next_states)

    def _run_unbatched(
        self, x: Tensor, state: State | None, timespans: TensorLike | None, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        """Run a sequence without a batch axis."""
        state = None if state is None else tree.map_leaves(lambda part: part[None], state)
        mask = None if mask is None else mask[None]
        y, state = self.run(x[None], state, timespans, mask)
        return y[0], tree.map_leaves(lambda part: part[0], state)

    def _run_layer(
        self,
        index: int,
        x: Tensor,
        states: list[State],
        spans: Timespan,
        mask: Tensor | None,
        all_outputs: bool,
    ) -> tuple[Tensor, list[State]]:
        """Return the outputs of a layer, all or only the last, and its next states."""
        outputs, next_states = [], []
        for cell, backward in zip(self._layer(index), (False, True), strict=False):
            state = states[index * len(self._layer(index)) + backward]
            inputs, times, real = _reverse_time(x, spans, mask) if backward else (x, spans, mask)
            y, next_state = cell.walk(inputs, state, times, real)
            if not self.return_sequences and not y.shape[1]:
                raise ShapeError(
                    f"{type(self).__name__}: return_sequences=False requires at least one "
                    f"position, got an input of shape {x.shape}"
                )
            if not all_outputs:
                outputs.append(y[:, -1])
            else:
                outputs.append(ops.flip(y, axis=1) if backward else y)
            next_states.append(next_state)
        return outputs[0] if len(outputs) == 1 else ops.concat(outputs, axis=-1), next_states

    def _timespans(self, x: Tensor, timespans: TensorLike | None) -> Timespan:
        """Return a number, or a tensor of shape (batch or 1, time, 1)."""
        if timespans is None:
            return 1.0
        if isinstance(timespans, (int, float)):
            return float(timespans)
        spans = convert_to_tensor(timespans, dtype=x.dtype, backend=x.backend)
        if spans.ndim == 0:
            return spans
        if spans.shape not in (x.shape[:2], x.shape[1:2], (1, x.shape[1])):
            raise ShapeError(
                f"{type(self).__name__}: expected timespans of shape (time,) = {x.shape[1:2]} or "
                f"(batch, time) = {x.shape[:2]}, got {spans.shape}"
            )
        return (spans[None] if spans.ndim == 1 else spans)[:, :, None]

    def _states(self, batch: int, state: State | None) -> list[State]:
        """Return the state of each cell."""
        count = len(self.cells) + len(self.backward_cells)
        if state is None:
            state = self.initial_state(batch)
            return [state] if count == 1 else list(state)
        states = [state] if count == 1 else list(state)
        if len(states) != count:
            raise ArgumentError(
                f"{type(self).__name__}: expected one state for each of the {count} cells, got "
                f"{len(states)}"
            )
        widths = [cell.widths for index in range(len(self.cells)) for cell in self._layer(index)]
        for each, width in zip(states, widths, strict=True):
            self._check_state(batch, each, width)
        return states

    def _check_state(self, batch: int, state: State, widths: Tree[int]) -> None:
        check_state(self, state, [(batch, width) for width in tree.leaves_of(widths)])

    def initial_state(self, batch: int) -> State:
        """Return the state before the first position: zeros."""
        layers = range(len(self.cells))
        return _unwrap_single(
            [cell.initial_state(batch) for index in layers for cell in self._layer(index)]
        )

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example."""
        return sum(cell.state_size for cell in [*self.cells, *self.backward_cells])

    def step(self, x: Tensor, state: State, timespan: TensorLike = 1.0) -> tuple[Tensor, State]:
        """Return the output at one position, (batch, out_features), and the next state.

        Args:
            x: Input, (batch, features).
            state: State before the position.
            timespan: Time since the previous position: a number or (batch, 1). Default: 1.
        """
        if not self.is_causal:
            raise NotImplementedError(
                f"{type(self).__name__}: a bidirectional layer needs the whole sequence: it has no "
                f"step()"
            )
        if not isinstance(timespan, (int, float, Tensor)):
            timespan = convert_to_tensor(timespan, dtype=x.dtype, backend=x.backend)
        next_states: list[State] = []
        for cell, before in zip(self.cells, self._states(x.shape[0], state), strict=True):
            if next_states and self.dropout is not None:
                x = self.dropout(x)
            x, new = cell.step(x, before, timespan)
            next_states.append(new)
        y = x if self.projection is None else self.projection(x)
        return y, _unwrap_single(next_states)


def stack_cells(
    create: Callable[[int], RecurrentCell], features: int, num_layers: int, bidirectional: bool
) -> tuple[list[RecurrentCell], list[RecurrentCell]]:
    """Return the forward and backward cells of stacked layers.

    Args:
        create: Function that creates a cell for a number of input features.
        features: Number of input features of the first layer.
        num_layers: Number of layers.
        bidirectional: Whether each layer has a backward cell.
    """
    forward: list[RecurrentCell] = []
    backward: list[RecurrentCell] = []
    for _ in range(num_layers):
        forward.append(create(features))
        if bidirectional:
            backward.append(create(features))
        features = forward[-1].out_features * (1 + bidirectional)
    return forward, backward


def _as_list(cells: RecurrentCell | Sequence[RecurrentCell]) -> list[RecurrentCell]:
    return [cells] if isinstance(cells, RecurrentCell) else list(cells)


def _unwrap_single(states: list[State]) -> State:
    """Return the only state, or all states as a tuple."""
    return states[0] if len(states) == 1 else tuple(states)


def _reverse_time(
    x: Tensor, spans: Timespan, mask: Tensor | None
) -> tuple[Tensor, Timespan, Tensor | None]:
    """Return the inputs, timespans and mask of a sequence that is read backward."""
    spans = ops.flip(spans, axis=1) if isinstance(spans, Tensor) and spans.ndim else spans
    return ops.flip(x, axis=1), spans, None if mask is None else ops.flip(mask, axis=1)
