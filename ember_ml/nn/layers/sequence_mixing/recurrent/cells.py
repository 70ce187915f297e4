"""The base classes of recurrent cells."""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

from ember_ml import ops
from ember_ml._core import runtime, tree
from ember_ml._core.dtype import EmberDType
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml._core.types import Tree
from ember_ml.backend import devices
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.sequence_mixing.base import State
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter

Timespan: TypeAlias = float | Tensor
"""Time since the previous position: a number, or a tensor that broadcasts to the batch."""
Mask: TypeAlias = Tensor | None
"""Padding mask, (batch, time), False for padding; None without padding."""
T = TypeVar("T")
Weights = TypeVar("Weights")
Entry = TypeVar("Entry")


class RecurrentCell(Module):
    """One step of a recurrence: maps an input and a state to an output and the next state.

    Subclasses set `in_features`, `out_features` and `widths`, and implement `step`. `Recurrent`
    turns a cell into a layer.

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
    """Number of input features."""
    out_features: int
    """Number of output features."""
    widths: Tree[int]
    """Number of features of each tensor of the state, in the structure of the state."""

    def step(self, x: Tensor, state: State, timespan: Timespan = 1.0) -> tuple[Tensor, State]:
        """Return the output, (batch, out_features), and the next state.

        Args:
            x: Input, (batch, in_features).
            state: Tree of (batch, width) tensors.
            timespan: Time since the previous step: a number or (batch, 1). Default: 1.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement step()")

    def forward(
        self, x: Tensor, state: State | None = None, timespan: Timespan = 1.0
    ) -> tuple[Tensor, State]:
        """Return the output, (batch, out_features), and the next state.

        Args:
            x: Input, (batch, in_features).
            state: Tree of (batch, width) tensors. Default: the initial state.
            timespan: Time since the previous step: a number or (batch, 1). Default: 1.
        """
        if x.ndim != 2 or x.shape[1] != self.in_features:
            raise ShapeError(
                f"{type(self).__name__}: expected an input of shape (batch, {self.in_features}), "
                f"got {x.shape}"
            )
        state = self.initial_state(x.shape[0]) if state is None else state
        return self.step(x, state, timespan)

    def initial_state(self, batch: int) -> State:
        """Return the state before the first step: zeros."""
        like = _any_parameter(self)
        dtype = None if like is None else like.dtype
        cache: dict[int, Tensor] = {}

        def zeros(width: int) -> Tensor:
            if width in cache:  # zeros_like is faster than a new tensor
                return ops.zeros_like(cache[width])
            cache[width] = _zeros((batch, width), dtype, like)
            return cache[width]

        return tree.map_leaves(zeros, self.widths)

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example."""
        return sum(tree.leaves_of(self.widths))

    def walk(
        self, x: Tensor, state: State, timespans: Timespan = 1.0, mask: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Return the outputs of a sequence, (batch, time, out_features), and the last state.

        Args:
            x: Input, (batch, time, in_features).
            state: State before the first position.
            timespans: A number, or (batch or 1, time, 1). Default: 1.
            mask: (batch, time), False where the state does not change. Default: none.
        """
        spans = timespans_by_step(timespans, x.shape[1])
        entries = zip(ops.unstack(x, 1), spans, strict=True)
        outputs = []
        if mask is None:
            for entry, span in entries:
                y, state = self.step(entry, state, span)
                outputs.append(y)
            return stack_outputs(outputs, x, self.out_features), state
        y = _zeros((x.shape[0], self.out_features), x.dtype, x)
        for (entry, span), is_real in zip(entries, masks_by_step(mask, x.shape[1]), strict=True):
            y, state = where_real(is_real, self.step(entry, state, span), (y, state))
            outputs.append(y)
        return stack_outputs(outputs, x, self.out_features), state


class HoistedCell(RecurrentCell, Generic[Weights, Entry]):
    """Cell that hoists work out of the loop over the positions.

    `gather` runs once per sequence and `prepare` once for all inputs; only `advance` runs at each
    position. Half precision is computed in float32 within a sequence.

    Subclasses implement `gather`, `prepare`, `advance` and `output`.
    """

    def gather(self, timespan: Timespan | None) -> Weights:
        """Return a tree of tensors computed from the parameters.

        Args:
            timespan: Time between steps, or None if it varies.
        """
        raise NotImplementedError

    def prepare(self, x: Tensor, weights: Weights) -> Entry:
        """Return a tree of (..., width) tensors computed from the inputs, (..., in_features)."""
        raise NotImplementedError

    def advance(self, entry: Entry, state: State, timespan: Timespan, weights: Weights) -> State:
        """Return the next state."""
        raise NotImplementedError

    def output(self, state: State, weights: Weights) -> Tensor:
        """Return the output of a state."""
        raise NotImplementedError

    def step(self, x: Tensor, state: State, timespan: Timespan = 1.0) -> tuple[Tensor, State]:
        """Return the output and the next state."""
        dtype, (x, state, weights) = x.dtype, self._begin(x, state, timespan)
        state = self.advance(self.prepare(x, weights), state, timespan, weights)
        return _restore_half((self.output(state, weights), state), dtype)

    def walk(
        self, x: Tensor, state: State, timespans: Timespan = 1.0, mask: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Return the outputs of a sequence and the last state."""
        dtype, (x, state, weights) = x.dtype, self._begin(x, state, timespans)
        return _restore_half(self.sweep(x, state, timespans, mask, weights), dtype)

    def _begin(self, x: Tensor, state: State, timespans: Timespan) -> tuple[Tensor, State, Weights]:
        """Return input, state and gathered weights, with half precision converted to float32."""
        weights = self.gather(timespans if varying_timespans(timespans) is None else None)
        if x.dtype.bits != 16:
            return x, state, weights
        return upcast_half(x), _upcast_leaves(state), _upcast_leaves(weights)

    def sweep(
        self, x: Tensor, state: State, timespans: Timespan, mask: Mask, weights: Weights
    ) -> tuple[Tensor, State]:
        """Compute `walk` with gathered weights."""
        length = x.shape[1]
        spans, masks = timespans_by_step(timespans, length), masks_by_step(mask, length)
        leaves, structure = tree.flatten(self.prepare(x, weights))
        columns = [ops.unstack(leaf, 1) for leaf in leaves]
        outputs = []
        for position in range(length):
            entry = tree.unflatten(structure, [column[position] for column in columns])
            new = self.advance(entry, state, spans[position], weights)
            state = where_real(masks[position], new, state)
            outputs.append(self.output(state, weights))
        return stack_outputs(outputs, x, self.out_features), state


def varying_timespans(timespans: Timespan) -> Tensor | None:
    """Return the timespans if they differ between steps; otherwise None."""
    return timespans if isinstance(timespans, Tensor) and timespans.ndim else None


def _upcast_leaves(nest: T) -> T:
    """Return a tree with its half precision tensors in float32."""
    upcast: T = tree.map_leaves(
        lambda leaf: upcast_half(leaf) if isinstance(leaf, Tensor) else leaf, nest
    )
    return upcast


def _restore_half(nest: T, dtype: EmberDType) -> T:
    """Return a tree in half precision if the input had it."""
    restored: T = tree.map_leaves(lambda x: x.astype(dtype), nest) if dtype.bits == 16 else nest
    return restored


def timespans_by_step(timespans: Timespan, length: int) -> list[Timespan]:
    """Return the timespan of each step."""
    spans = varying_timespans(timespans)
    return [timespans] * length if spans is None else list(ops.unstack(spans, 1))


def masks_by_step(mask: Tensor | None, length: int) -> list[Tensor | None]:
    """Return the mask of each step, (batch, 1)."""
    return [None] * length if mask is None else list(ops.unstack(mask[:, :, None], 1))


def where_real(is_real: Tensor | None, new: T, old: T) -> T:
    """Return the new tree, but the old one at padding."""
    if is_real is None:
        return new
    merged: T = tree.map_leaves(lambda x, y: ops.where(is_real, x, y), new, old)
    return merged


def stack_outputs(outputs: list[Tensor], x: Tensor, features: int) -> Tensor:
    """Stack the outputs to a sequence, which is empty if x is empty."""
    if outputs:
        return ops.stack(outputs, axis=1)
    return _zeros((x.shape[0], 0, features), x.dtype, x)


def _any_parameter(cell: RecurrentCell) -> Parameter | None:
    """Return any parameter; the cell's own are looked up faster than those of its submodules."""
    for value in vars(cell).values():
        if isinstance(value, Parameter):
            return value
    return next(iter(cell.parameters()), None)


def _zeros(shape: tuple[int, ...], dtype: EmberDType | None, like: Tensor | None) -> Tensor:
    """Return zeros on the backend and device of another tensor."""
    if like is None or like.backend != runtime.active():
        zeros = ops.zeros(shape, dtype=dtype)
        return zeros if like is None else zeros.to_backend(like.backend)
    device = like.device
    is_default = device == devices.resolve(like.backend, None)  # saves a second lookup
    return ops.zeros(shape, dtype=dtype, device=None if is_default else device)
