"""The base class of layers that mix the positions of a sequence."""

from __future__ import annotations

from typing import Any, TypeAlias

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import bool_
from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.sequence_module import SequenceModule, check_batch
from ember_ml.nn.sequence_module import State as State

TensorPair: TypeAlias = tuple[Tensor, Tensor]


def new_zeros(like: Tensor, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> Tensor:
    """Return zeros on the backend and device of another tensor.

    Args:
        like: The other tensor, such as a weight.
        shape: Shape of the result.
        dtype: Data type of the result. Default: that of `like`.
    """
    element = like[(0,) * like.ndim]
    return ops.broadcast_to(ops.zeros_like(element, dtype=dtype or like.dtype), shape)


def mask_padding(x: Tensor, mask: Tensor | None) -> Tensor:
    """Return x with zeros at padding.

    Args:
        x: Sequence, (batch, time, features).
        mask: (batch, time), False for padding.
    """
    return x if mask is None else ops.where(ops.astype(mask, bool_)[:, :, None], x, 0.0)


def real_lengths(mask: Tensor) -> Tensor:
    """Return the number of real positions of each example, (batch,), of a padding mask."""
    return ops.sum(ops.astype(mask, "int64"), axis=1)


def index_range(start: int, stop: int, like: Tensor) -> Tensor:
    """Return the integers from start to stop, excluded, on the backend and device of a tensor.

    Args:
        start: First integer.
        stop: End of the range.
        like: The other tensor.
    """
    if like.backend == runtime.active():
        return ops.arange(start, stop, device=like.device)
    return convert_to_tensor(range(start, stop), backend=like.backend)


def positions_after(position: Tensor, count: int) -> Tensor:
    """Return the indices of the next positions, (batch, count).

    Args:
        position: Index of the first of them, (batch,).
        count: Number of positions.
    """
    return position[:, None] + index_range(0, count, position)


def last_positions(before: Tensor, x: Tensor, mask: Tensor | None, axis: int = 1) -> Tensor:
    """Return the last real positions of each example, as many as there are in `before`.

    Args:
        before: Earlier positions; the batch is the first axis.
        x: Further positions.
        mask: Padding mask of x, (batch, time), with padding last. None: no padding.
        axis: Axis of time. Default: 1.
    """
    count, time = before.shape[axis], x.shape[axis]
    if mask is None:
        joined = x if time >= count else ops.concat([before, x], axis=axis)
        return joined[(slice(None),) * axis + (slice(joined.shape[axis] - count, None),)]
    places = positions_after(real_lengths(mask) - count, count)  # negative: in `before`
    shape = [x.shape[0], *[1] * (x.ndim - 1)]
    shape[axis] = count
    places = ops.reshape(places, shape)
    old = ops.take_along_axis(before, ops.clip(places + count, 0, count - 1), axis=axis)
    return ops.where(places < 0, old, ops.take_along_axis(x, ops.maximum(places, 0), axis=axis))


def last_indices(mask: Tensor) -> Tensor:
    """Return the index of the last real position of each example, example * time + position.

    Args:
        mask: Padding mask, (batch, time), with padding last and a real position in each example.
    """
    batch, time = mask.shape
    lengths = real_lengths(mask)
    return index_range(0, batch, lengths) * time + lengths - 1


class SequenceMixer(SequenceModule, Layer):
    """Layer that mixes the positions of a sequence: (batch, time, features) in and out.

    Subclasses implement `mix`, and `initial_state` if the layer is recurrent; `step` where one
    position has a faster form than a sequence of length 1.
    """

    features: int

    def mix(
        self, x: Tensor, mask: Tensor | None, state: State | None
    ) -> tuple[Tensor, State | None]:
        """Return the outputs of all positions, and the state after the last one.

        Args:
            x: Input, (batch, time, features), checked by `forward`.
            mask: Padding mask, (batch, time), False for padding. With a state, padding comes last
                and must not change the state.
            state: State before the first position. None: the start of a sequence whose state is
                not needed; the second result is then None.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define mix()")

    def forward(self, x: Tensor, mask: Tensor | None = None, *, state: State | None = None) -> Any:
        """Return the outputs of all positions; with a state, also the state after the last one.

        Args:
            x: Input, (batch, time, features).
            mask: Padding mask, (batch, time), False for padding. With a state, the padding of an
                example must come last; it does not change the state.
            state: State before the first position. Default: the start of the sequence.
        """
        self.check_sequence(x, mask)
        if state is None:
            return self.mix(x, mask, None)[0] if x.size else x
        check_batch(self, x.shape[0], state)
        if mask is not None:
            self.check_right_padded(mask)
        return self.mix(x, mask, state) if x.size else (x, state)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the output at one position, (batch, features), and the next state.

        Args:
            x: Input, (batch, features).
            state: State before the position.
        """
        self.check_step(x, state)
        y, state = self.mix(x[:, None], None, state)
        return y[:, 0], state

    def check_step(self, x: Tensor, state: State) -> None:
        """Raise an error unless x is one position of the right width, and the state fits it.

        Args:
            x: Input, expected to be (batch, features).
            state: State before the position.
        """
        self.check_features(x, self.features)
        if state is None:
            raise ArgumentTypeError(
                f"{type(self).__name__}.step: state is None; pass initial_state({x.shape[0]}), or "
                "the state that the previous step returned"
            )
        check_batch(self, x.shape[0], state)

    def check_sequence(self, x: Tensor, mask: Tensor | None = None) -> None:
        """Raise a ShapeError unless x is a sequence of the right width and the mask matches it.

        Args:
            x: Input, expected to be (batch, time, features).
            mask: Padding mask, expected to be (batch, time).
        """
        self.check_tensor(x)
        if x.ndim != 3 or x.shape[-1] != self.features:
            raise ShapeError(
                f"{type(self).__name__}: expected an input of shape (batch, time, "
                f"{self.features}), got {x.shape}"
            )
        if mask is None:
            return
        self.check_tensor(mask)
        if mask.shape != x.shape[:2]:
            raise ShapeError(
                f"{type(self).__name__}: expected a mask of shape (batch, time) = {x.shape[:2]}, "
                f"got {mask.shape}"
            )
