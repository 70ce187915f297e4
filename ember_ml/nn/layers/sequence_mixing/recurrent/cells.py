"""What a recurrent cell is."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core import runtime, tree
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.backend import devices
from ember_ml.nn.layers.sequence_mixing.base import State
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter

Timespan = Any
"""The time since the position before: a number, or a tensor that broadcasts to the batch."""


class RecurrentCell(Module):
    """One step of a recurrence: from an input and a state to an output and the next state.

    Subclasses set `in_features`, `out_features` and `widths` and write `step`; `Recurrent` makes a
    layer of them.

    Example:
        >>> from ember_ml.nn.layers.sequence_mixing import recurrent
        >>> class Leaky(recurrent.RecurrentCell):
        ...     def __init__(self, features: int) -> None:
        ...         self.in_features = self.out_features = features
        ...         self.widths = features
        ...         self.decay = nn.Parameter(ops.full((features,), 0.5))
        ...     def step(self, x, state, timespan=1.0):
        ...         state = self.decay * state + x
        ...         return state, state
        >>> recurrent.Recurrent(Leaky(2))(ops.ones((1, 3, 2))).tolist()
        [[[1.0, 1.0], [1.5, 1.5], [1.75, 1.75]]]
    """

    in_features: int
    out_features: int
    widths: Any
    """How many numbers each part of the state has, in the structure of the state."""

    def step(self, x: Tensor, state: State, timespan: Timespan = 1.0) -> tuple[Tensor, State]:
        """The output (batch, out_features) and the next state.

        Args:
            x: (batch, in_features).
            state: a nest of (batch, width).
            timespan: the time since the step before: a number, or (batch, 1).
        """
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def forward(
        self, x: Tensor, state: State | None = None, timespan: Timespan = 1.0
    ) -> tuple[Tensor, State]:
        """`step`, from the initial state if none is given."""
        if x.ndim != 2 or x.shape[1] != self.in_features:
            raise ShapeError(
                f"{type(self).__name__} takes (batch, {self.in_features}); the input has the "
                f"shape {x.shape}"
            )
        state = self.initial_state(x.shape[0]) if state is None else state
        return self.step(x, state, timespan)

    def initial_state(self, batch: int) -> State:
        """Zeros."""
        like = _parameter(self)
        dtype = None if like is None else like.dtype
        made: dict[int, Tensor] = {}

        def zeros(width: int) -> Tensor:
            if width in made:  # the quicker way
                return ops.zeros_like(made[width])
            made[width] = _zeros((batch, width), dtype, like)
            return made[width]

        return tree.map_leaves(zeros, self.widths)

    @property
    def state_size(self) -> int:
        """How many numbers the state has, per example."""
        return sum(tree.leaves_of(self.widths))

    def walk(
        self, x: Tensor, state: State, timespans: Timespan = 1.0, mask: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """The outputs (batch, time, out_features) of a sequence, and the state after it.

        Args:
            x: (batch, time, in_features).
            state: the state before the first position.
            timespans: a number, or (batch or 1, time, 1).
            mask: (batch, time), False where the state is to stay as it is.
        """
        spans = steps_of(timespans, x.shape[1])
        entries = zip(ops.unstack(x, 1), spans, strict=True)
        outputs = []
        if mask is None:
            for entry, span in entries:
                y, state = self.step(entry, state, span)
                outputs.append(y)
            return stacked(outputs, x, self.out_features), state
        y = _zeros((x.shape[0], self.out_features), x.dtype, x)
        for (entry, span), real in zip(entries, masks_of(mask, x.shape[1]), strict=True):
            y, state = held(real, self.step(entry, state, span), (y, state))
            outputs.append(y)
        return stacked(outputs, x, self.out_features), state


class HoistedCell(RecurrentCell):
    """A cell that works on a whole sequence at once, as far as its input goes.

    Subclasses write `gather`, `prepare`, `advance` and `output`. Half precision is computed in
    float32 within a sequence.
    """

    def gather(self, timespan: Timespan) -> Any:
        """What is made of the parameters, once a sequence: a nest of tensors.

        Args:
            timespan: the same for all steps, or None if they differ.
        """
        raise NotImplementedError

    def prepare(self, x: Tensor, made: Any) -> Any:
        """What is made of the inputs (..., in_features): a nest of tensors (..., width)."""
        raise NotImplementedError

    def advance(self, entry: Any, state: State, timespan: Timespan, made: Any) -> State:
        """The next state."""
        raise NotImplementedError

    def output(self, state: State, made: Any) -> Tensor:
        """What is seen of a state."""
        raise NotImplementedError

    def step(self, x: Tensor, state: State, timespan: Timespan = 1.0) -> tuple[Tensor, State]:
        """The output and the next state."""
        dtype, (x, state, made) = x.dtype, self._begin(x, state, timespan)
        state = self.advance(self.prepare(x, made), state, timespan, made)
        return _narrowed((self.output(state, made), state), dtype)

    def walk(
        self, x: Tensor, state: State, timespans: Timespan = 1.0, mask: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """The outputs of a sequence, and the state after it."""
        dtype, (x, state, made) = x.dtype, self._begin(x, state, timespans)
        return _narrowed(self.sweep(x, state, timespans, mask, made), dtype)

    def _begin(self, x: Tensor, state: State, timespans: Timespan) -> tuple[Tensor, State, Any]:
        """The input, the state and what is made of the parameters, half precision in float32."""
        made = self.gather(timespans if is_scalar(timespans) else None)
        if x.dtype.bits != 16:
            return x, state, made
        return widened(x), tree.map_leaves(widened, state), tree.map_leaves(widened, made)

    def sweep(
        self, x: Tensor, state: State, timespans: Timespan, mask: Tensor | None, made: Any
    ) -> tuple[Tensor, State]:
        """`walk`, with the parameters gathered."""
        length = x.shape[1]
        spans, masks = steps_of(timespans, length), masks_of(mask, length)
        leaves, structure = tree.flatten(self.prepare(x, made))
        columns = [ops.unstack(leaf, 1) for leaf in leaves]
        outputs = []
        for at in range(length):
            entry = tree.unflatten(structure, [column[at] for column in columns])
            new = self.advance(entry, state, spans[at], made)
            state = held(masks[at], new, state)
            outputs.append(self.output(state, made))
        return stacked(outputs, x, self.out_features), state


def is_scalar(timespans: Timespan) -> bool:
    """Whether all steps take the same time."""
    return not isinstance(timespans, Tensor) or timespans.ndim == 0


def widened(x: Any) -> Any:
    """Half precision in float32, all else as it is."""
    return x.astype("float32") if isinstance(x, Tensor) and x.dtype.bits == 16 else x


def _narrowed(nest: Any, dtype: Any) -> Any:
    """The nest in half precision, if that is asked for."""
    return tree.map_leaves(lambda x: x.astype(dtype), nest) if dtype.bits == 16 else nest


def steps_of(timespans: Timespan, length: int) -> list[Timespan]:
    """The timespan of each step."""
    return [timespans] * length if is_scalar(timespans) else list(ops.unstack(timespans, 1))


def masks_of(mask: Tensor | None, length: int) -> list[Tensor | None]:
    """The mask of each step, (batch, 1)."""
    return [None] * length if mask is None else list(ops.unstack(mask[:, :, None], 1))


def held(real: Tensor | None, new: Any, old: Any) -> Any:
    """The new nest, but the old one where a position is padding."""
    if real is None:
        return new
    return tree.map_leaves(lambda x, y: ops.where(real, x, y), new, old)


def stacked(outputs: list[Tensor], x: Tensor, features: int) -> Tensor:
    """The outputs as a sequence; an empty one for an empty x."""
    if outputs:
        return ops.stack(outputs, axis=1)
    return _zeros((x.shape[0], 0, features), x.dtype, x)


def _parameter(cell: RecurrentCell) -> Parameter | None:
    """Any parameter; one of the cell's own is found more quickly than those within its parts."""
    for value in vars(cell).values():
        if isinstance(value, Parameter):
            return value
    return next(iter(cell.parameters()), None)


def _zeros(shape: tuple[int, ...], dtype: Any, like: Tensor | None) -> Tensor:
    if like is None or like.backend != runtime.active():
        made = ops.zeros(shape, dtype=dtype)
        return made if like is None else made.to_backend(like.backend)
    device = like.device
    usual = device == devices.resolve(like.backend, None)  # which need not be looked up again
    return ops.zeros(shape, dtype=dtype, device=None if usual else device)
