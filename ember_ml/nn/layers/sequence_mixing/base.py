"""The base of the layers that mix positions."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.sequence_module import SequenceModule
from ember_ml.nn.sequence_module import State as State


def zeros_beside(like: Tensor, shape: tuple[int, ...], dtype: str | None = None) -> Tensor:
    """Zeros where another tensor is, whichever backend is active; of its dtype if none is given."""
    one = like[(0,) * like.ndim]
    return ops.broadcast_to(ops.zeros_like(one, dtype=dtype or like.dtype), shape)


class SequenceMixer(SequenceModule, Layer):
    """A layer that mixes the positions of a sequence: (batch, time, features) in and out.

    It has two forms that give the same: `forward` takes the whole sequence, for training; `step`
    takes one position and the state, for generation in constant memory.

    Subclasses write `forward`, and `initial_state` and `step` where the maths has them.
    """

    features: int

    def unroll(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """The sequence mixed step by step, and the state after it: the readable reference."""
        self.check_sequence(x)
        state = self.initial_state(x.shape[0]) if state is None else state
        outputs = []
        for position in range(x.shape[1]):
            y, state = self.step(x[:, position], state)
            outputs.append(y)
        return ops.stack(outputs, axis=1) if outputs else x, state

    def check_sequence(self, x: Tensor, mask: Tensor | None = None) -> None:
        """Raise a ShapeError that names the layer if the shapes are not those of a sequence."""
        if x.ndim != 3 or x.shape[-1] != self.features:
            raise ShapeError(
                f"{type(self).__name__} takes (batch, time, {self.features}); the input has the "
                f"shape {x.shape}"
            )
        if mask is not None and mask.shape != x.shape[:2]:
            raise ShapeError(
                f"{type(self).__name__} takes a mask of (batch, time) = {x.shape[:2]}, not "
                f"{mask.shape}"
            )
