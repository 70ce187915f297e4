r"""Your own layer and task, compared with built-in layers.

    ember mad run signed-gate+swiglu mamba+swiglu attention+swiglu \
        --plugin own_parts.py --task parity

The layer is a linear recurrence whose decay depends on the input and can be negative. The task
needs a negative decay: it asks for the parity of the ones so far.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ember_ml import ops
from ember_ml.configs.fields import Seed, Size
from ember_ml.mad import Draws, Task
from ember_ml.nn.layers import Dense
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State, new_zeros
from ember_ml.nn.tensor import Tensor
from ember_ml.registry import register


@register("layers/signed-gate")
class SignedGate(SequenceMixer):
    r"""Linear recurrence with an input-dependent decay in (-1, 1).

    .. math:: h_t = \tanh(W_a x_t) \odot h_{t-1} + W_b x_t, \quad y_t = W_o h_t

    Args:
        features: Number of input and output features.
    """

    def __init__(self, features: Size) -> None:
        self.features = features
        self.enter = Dense(features, 2 * features)
        self.leave = Dense(features, features)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the outputs of a whole sequence."""
        self.check_sequence(x, mask)
        rate, value = self._read(x)
        if mask is not None:  # padding keeps the state
            there = ops.expand_dims(mask, -1)
            rate, value = ops.where(there, rate, 1.0), ops.where(there, value, 0.0)
        states, _ = ops.linear_recurrence(rate, value)
        return self.leave(states)

    @property
    def state_size(self) -> int:
        """Size of the state of one example."""
        return self.features

    def initial_state(self, batch: int) -> State:
        """Return the state before the first position."""
        return new_zeros(self.leave.weight, (batch, self.features))

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the output at one position and the next state."""
        rate, value = self._read(x)
        state = rate * state + value
        return self.leave(state), state

    def _read(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rate, value = ops.split(self.enter(x), 2, axis=-1)
        return ops.tanh(rate), value


@register("tasks/parity")
class Parity(Task):
    """Parity of the ones up to each position.

    Args:
        vocab_size: Number of different tokens: 0 and 1.
        seq_len: Number of tokens of an example.
        num_train: Number of training examples.
        num_validation: Number of validation examples.
        num_test: Number of test examples.
        seed: Seed of the examples.
    """

    harder: ClassVar = {"seq_len": (64, 128, 256)}
    scales: ClassVar = {
        "tiny": {"seq_len": 12, "num_train": 32, "num_validation": 8, "num_test": 8, "steps": 4},
        "mini": {"steps": 500, "num_validation": 256},
    }

    def __init__(
        self,
        vocab_size: Size = 2,
        seq_len: Size = 32,
        num_train: Size = 12800,
        num_validation: Size = 1280,
        num_test: Size = 1280,
        seed: Seed = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)

    def generate(self, draws: Draws, *, test: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return bits, and the parity of the bits up to each."""
        bits = draws.below(2, self.seq_len)
        return bits, bits.cumsum(axis=1) % 2
