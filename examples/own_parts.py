r"""A layer and a task of one's own, compared with what there is.

    ember mad run signed-gate+swiglu mamba+swiglu attention+swiglu \
        --plugin examples/own_parts.py --task parity

The layer is a linear recurrence whose rates depend on what it reads and may be negative; the task
is one that needs them: whether the ones so far are odd in number.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ember_ml import ops
from ember_ml.mad import Draws, Task
from ember_ml.nn.layers import Dense
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State, new_zeros
from ember_ml.nn.tensor import Tensor
from ember_ml.registry import register


@register("layers/signed-gate")
class SignedGate(SequenceMixer):
    r"""A recurrence that can turn the sign of what it knows.

    .. math:: h_t = \tanh(W_a x_t) \odot h_{t-1} + W_b x_t, \quad y_t = W_o h_t

    Args:
        features: the number of features in and out.
    """

    def __init__(self, features: int) -> None:
        self.features = features
        self.enter = Dense(features, 2 * features)
        self.leave = Dense(features, features)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The whole sequence, for training."""
        self.check_sequence(x, mask)
        rate, value = self._read(x)
        if mask is not None:  # padding changes nothing
            there = ops.expand_dims(mask, -1)
            rate, value = ops.where(there, rate, 1.0), ops.where(there, value, 0.0)
        states, _ = ops.linear_recurrence(rate, value)
        return self.leave(states)

    @property
    def state_size(self) -> int:
        """Of one example."""
        return self.features

    def initial_state(self, batch: int) -> State:
        """Nothing is known yet."""
        return new_zeros(self.leave.weight, (batch, self.features))

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One position, for generation."""
        rate, value = self._read(x)
        state = rate * state + value
        return self.leave(state), state

    def _read(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rate, value = ops.split(self.enter(x), 2, axis=-1)
        return ops.tanh(rate), value


@register("tasks/parity")
class Parity(Task):
    """Whether the ones so far are odd in number.

    Args:
        vocab_size: two, a zero and a one.
        seq_len: how many tokens an example has.
        num_train: how many examples there are to learn from.
        num_validation: how many to choose a model by.
        num_test: how many to be judged by.
        seed: of all examples.
    """

    harder: ClassVar = {"seq_len": (64, 128, 256)}
    scales: ClassVar = {
        "tiny": {"seq_len": 12, "num_train": 32, "num_validation": 8, "num_test": 8, "steps": 4},
        "mini": {"steps": 500, "num_validation": 256},
    }

    def __init__(
        self,
        vocab_size: int = 2,
        seq_len: int = 32,
        num_train: int = 12800,
        num_validation: int = 1280,
        num_test: int = 1280,
        seed: int = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)

    def generate(self, draws: Draws, *, test: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return bits, and the parity of the bits up to each."""
        bits = draws.below(2, self.seq_len)
        return bits, bits.cumsum(axis=1) % 2
