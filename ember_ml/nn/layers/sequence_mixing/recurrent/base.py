"""Layers around recurrent cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.channel_mixing import Dense, Dropout
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import RecurrentCell, Timespan


class Recurrent(SequenceMixer):
    """A layer around one recurrent cell, or around several on top of each other.

    Called, it gives the outputs. `run` takes and gives the state as well, so that a sequence can
    come in pieces. The state is that of the cell; of several cells it is a tuple, layer by layer,
    the forward direction before the backward one.

    Where the mask is False the states stay as they are, and the output is that of the state before.

    Args:
        cells: the cell, or those of the layers from the first to the last.
        backward: as many cells for the other direction, whose outputs stand beside the others.
        dropout: the share of each layer's outputs that training drops, but for the last layer.
        return_sequences: whether all outputs come back, or only the last.
        proj_size: the features of a linear map of the outputs; none if not given.

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
        self.cells = _several(cells)
        self.backward_cells = _several(backward)
        if len(self.backward_cells) not in (0, len(self.cells)):
            raise ArgumentError(
                f"{type(self).__name__}: {len(self.backward_cells)} backward cells for "
                f"{len(self.cells)} layers"
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

    def _layer(self, at: int) -> list[RecurrentCell]:
        """The cells of a layer: one a direction."""
        return [self.cells[at], *self.backward_cells[at : at + 1]]

    def forward(
        self, x: Tensor, mask: Tensor | None = None, timespans: Timespan | None = None
    ) -> Tensor:
        """The outputs.

        Args:
            x: (batch, time, features), or (time, features).
            mask: (batch, time), False where there is padding.
            timespans: the time since the position before: a number, (time,) or (batch, time).
        """
        return self.run(x, None, timespans, mask)[0]

    def run(
        self,
        x: Tensor,
        state: State | None = None,
        timespans: Timespan | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """The outputs and the state after the last position.

        Args:
            x: (batch, time, features), or (time, features).
            state: the state before the first position; zeros if not given.
            timespans: the time since the position before: a number, (time,) or (batch, time); 1 if
                not given.
            mask: (batch, time), False where there is padding.
        """
        if x.ndim == 2:
            return self._run_one(x, state, timespans, mask)
        self.check_sequence(x, mask)
        spans = self._spans(x, timespans)
        states = self._states(x.shape[0], state)
        y, after = x, []
        for at in range(len(self.cells)):
            if at and self.dropout is not None:
                y = self.dropout(y)
            whole = self.return_sequences or at < len(self.cells) - 1
            y, ends = self._run_layer(at, y, states, spans, mask, whole)
            after += ends
        y = y if self.projection is None else self.projection(y)
        return y, after[0] if len(after) == 1 else tuple(after)

    def _run_one(self, x: Tensor, state: Any, timespans: Any, mask: Any) -> tuple[Tensor, State]:
        """A sequence without a batch axis."""
        state, mask = (
            None if nest is None else tree.map_leaves(lambda part: part[None], nest)
            for nest in (state, mask)
        )
        y, state = self.run(x[None], state, timespans, mask)
        return y[0], tree.map_leaves(lambda part: part[0], state)

    def _run_layer(
        self, at: int, x: Tensor, states: list[State], spans: Any, mask: Tensor | None, whole: bool
    ) -> tuple[Tensor, list[State]]:
        """The outputs of a layer, or only those after the last position, and the states."""
        outputs, ends = [], []
        for cell, backward in zip(self._layer(at), (False, True), strict=False):
            state = states[at * len(self._layer(at)) + backward]
            given = [_flipped(part, backward) for part in (x, spans, mask)]
            y, end = cell.walk(given[0], state, given[1], given[2])
            if not self.return_sequences and not y.shape[1]:
                raise ShapeError(f"{type(self).__name__}: a sequence of no steps has no last one")
            outputs.append(_flipped(y, backward) if whole else y[:, -1])
            ends.append(end)
        return _joined(outputs), ends

    def _spans(self, x: Tensor, timespans: Any) -> Timespan:
        """A number, or (batch or 1, time, 1)."""
        if timespans is None:
            return 1.0
        if isinstance(timespans, (int, float)):
            return float(timespans)
        spans = convert_to_tensor(timespans, dtype=x.dtype, backend=x.backend)
        if spans.ndim == 0:
            return spans
        if spans.shape not in (x.shape[:2], x.shape[1:2], (1, x.shape[1])):
            raise ShapeError(
                f"{type(self).__name__} takes timespans of (time,) = {x.shape[1:2]} or (batch, "
                f"time) = {x.shape[:2]}, not {spans.shape}"
            )
        return (spans[None] if spans.ndim == 1 else spans)[:, :, None]

    def _states(self, batch: int, state: State | None) -> list[State]:
        """The states of the cells."""
        count = len(self.cells) + len(self.backward_cells)
        given = self.initial_state(batch) if state is None else state
        states = [given] if count == 1 else list(given)
        if len(states) != count:
            raise ArgumentError(
                f"{type(self).__name__}: {len(states)} states for {count} cells; give one for each"
            )
        if state is None:
            return states
        widths = [cell.widths for at in range(len(self.cells)) for cell in self._layer(at)]
        for one, width in zip(states, widths, strict=True):
            self._check_state(batch, one, width)
        return states

    def _check_state(self, batch: int, state: State, widths: Any) -> None:
        found = [x.shape for x in tree.leaves_of(state)]
        wanted = [(batch, width) for width in tree.leaves_of(widths)]
        if found != wanted:
            raise ShapeError(
                f"{type(self).__name__} takes a state of the shapes {wanted}, not {found}"
            )

    def initial_state(self, batch: int) -> State:
        """The state before the first position: zeros."""
        layers = range(len(self.cells))
        states = [cell.initial_state(batch) for at in layers for cell in self._layer(at)]
        return states[0] if len(states) == 1 else tuple(states)

    @property
    def state_size(self) -> int:
        """How many numbers the state has, per example."""
        cells = [*self.cells, *self.backward_cells]
        return sum(cell.state_size for cell in cells)

    def step(self, x: Tensor, state: State, timespan: Timespan = 1.0) -> tuple[Tensor, State]:
        """The output of one position, (batch, out_features), and the state after it."""
        if not self.is_causal:
            raise NotImplementedError(
                f"{type(self).__name__}: a layer of two directions needs the whole sequence"
            )
        after: list[State] = []
        for cell, before in zip(self.cells, self._states(x.shape[0], state), strict=True):
            if after and self.dropout is not None:
                x = self.dropout(x)
            x, new = cell.step(x, before, timespan)
            after.append(new)
        y = x if self.projection is None else self.projection(x)
        return y, after[0] if len(after) == 1 else tuple(after)


def stack(
    make: Callable[[int], RecurrentCell], features: int, num_layers: int, bidirectional: bool
) -> tuple[list[RecurrentCell], list[RecurrentCell]]:
    """The cells of so many layers, each reading what the one below gives, and the backward ones."""
    forward: list[RecurrentCell] = []
    backward: list[RecurrentCell] = []
    for _ in range(num_layers):
        forward.append(make(features))
        if bidirectional:
            backward.append(make(features))
        features = forward[-1].out_features * (1 + bidirectional)
    return forward, backward


def _several(cells: RecurrentCell | Sequence[RecurrentCell]) -> list[RecurrentCell]:
    return [cells] if isinstance(cells, RecurrentCell) else list(cells)


def _flipped(part: Any, backward: bool) -> Any:
    return ops.flip(part, axis=1) if backward and isinstance(part, Tensor) and part.ndim else part


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else ops.concat(parts, axis=-1)
