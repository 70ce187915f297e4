"""The base class of layers that mix the positions of a sequence."""

from __future__ import annotations

from typing import TypeAlias

from ember_ml import ops
from ember_ml._core.dtype import bool_
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.sequence_module import SequenceModule
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


class SequenceMixer(SequenceModule, Layer):
    """Layer that mixes the positions of a sequence: (batch, time, features) in and out.

    It has two equivalent forms. `forward` takes the whole sequence, for training. `step` takes one
    position and the state, for generation in constant memory.

    Subclasses implement `forward`, and `initial_state` and `step` if the layer is recurrent.
    """

    features: int

    def unroll(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Apply `step` to each position: the reference implementation of `forward`.

        Args:
            x: Input, (batch, time, features).
            state: State before the first position. Default: the initial state.

        Returns:
            The outputs, (batch, time, features), and the state after the last position.
        """
        self.check_sequence(x)
        state = self.initial_state(x.shape[0]) if state is None else state
        outputs = []
        for position in range(x.shape[1]):
            y, state = self.step(x[:, position], state)
            outputs.append(y)
        return ops.stack(outputs, axis=1) if outputs else x, state

    def check_sequence(self, x: Tensor, mask: Tensor | None = None) -> None:
        """Raise a ShapeError unless x is a sequence of the right width and the mask matches it.

        Args:
            x: Input, expected to be (batch, time, features).
            mask: Padding mask, expected to be (batch, time).
        """
        if x.ndim != 3 or x.shape[-1] != self.features:
            raise ShapeError(
                f"{type(self).__name__}: expected an input of shape (batch, time, "
                f"{self.features}), got {x.shape}"
            )
        if mask is not None and mask.shape != x.shape[:2]:
            raise ShapeError(
                f"{type(self).__name__}: expected a mask of shape (batch, time) = {x.shape[:2]}, "
                f"got {mask.shape}"
            )
