"""The base of the layers that mix positions."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.base import Layer

State = Any
"""What a sequence leaves behind for its continuation: a nest of tensors, the batch axis first."""


class SequenceMixer(Layer):
    """A layer that mixes the positions of a sequence: (batch, time, features) in and out.

    It has two forms that give the same: `forward` takes the whole sequence, for training; `step`
    takes one position and the state, for generation in constant memory.

    Subclasses write `forward`, and `initial_state` and `step` where the maths has them.
    """

    is_causal: bool = True
    """Whether an output depends on no later input."""

    features: int

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed.

        Args:
            x: (batch, time, features).
            mask: (batch, time), False where there is padding, which no other position sees.
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def initial_state(self, batch: int) -> State:
        """The state before the first position."""
        raise NotImplementedError(f"{type(self).__name__} has no form that goes step by step")

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The output of one position, (batch, features), and the state after it."""
        raise NotImplementedError(f"{type(self).__name__} has no form that goes step by step")

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
