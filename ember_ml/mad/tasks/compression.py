"""Compression of a sequence into the features of its last token."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ember_ml.configs.fields import Seed, Size
from ember_ml.mad.tasks.base import TINY, Task
from ember_ml.mad.tasks.draws import Draws
from ember_ml.registry import register

if TYPE_CHECKING:
    from ember_ml.configs.tasks import CompressionConfig


@register("tasks/compression", aliases=[])
class Compression(Task):
    """Reconstruction of a sequence from the features of its last token.

    The model is an autoencoder. A sequence is random tokens and a final end token; the targets are
    the inputs.

    Args:
        vocab_size: Number of different tokens, including the end token.
        seq_len: Number of tokens of an example.
        num_train: Number of training examples.
        num_validation: Number of validation examples.
        num_test: Number of test examples.
        seed: Seed of the examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.Compression(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    model = "models/autoencoder"
    short_name = "compress"
    harder: ClassVar = {
        "vocab_size": (32, 64, 128),
        "seq_len": (64, 128, 256),
        "num_train": (6400, 3200, 1600, 800),
    }
    scales: ClassVar = {
        "tiny": {"vocab_size": 8, "seq_len": 8, **TINY},
        "mini": {"seq_len": 16, "num_validation": 256, "steps": 1000},
    }

    def __init__(
        self,
        vocab_size: Size = 16,
        seq_len: Size = 32,
        num_train: Size = 12800,
        num_validation: Size = 1280,
        num_test: Size = 1280,
        seed: Seed = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)

    @staticmethod
    def check_config(config: CompressionConfig) -> None:
        """Raise a ValueError for sizes that allow no example."""
        if config.seq_len < 2:
            raise ValueError(f"seq_len must be at least 2, not {config.seq_len}")
        if config.vocab_size < 2:
            raise ValueError(f"vocab_size must be at least 2, not {config.vocab_size}")

    def roles(self) -> list[tuple[int, str]]:
        """Return the roles of the tokens, as (end, role) pairs."""
        return [(self.vocab_size - 1, "token"), (self.vocab_size, "end")]

    def generate(self, draws: Draws, *, test: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets; see `Task.generate`."""
        tokens = draws.below(self.vocab_size - 1, self.seq_len - 1)
        end = np.full((len(draws), 1), self.vocab_size - 1)
        sequence = np.concatenate([tokens, end], axis=1)
        return sequence, sequence
