"""Memorization of a fixed map from keys to values."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ember_ml.configs.fields import Seed, Size
from ember_ml.mad.tasks.base import TINY, Task
from ember_ml.mad.tasks.draws import IGNORED, Draws
from ember_ml.registry import register

if TYPE_CHECKING:
    from ember_ml.configs.tasks import MemorizationConfig

MAP_SPLIT = 3
"""Split number whose random numbers define the map; 0 to 2 are the splits of the examples."""


@register("tasks/memorization", aliases=["memorisation"])
class Memorization(Task):
    """Memorization of a fixed map from keys to values.

    The map is the same for all sequences, and a sequence does not contain its values. Each key is
    followed by an insert token, at which the value is the target.

    Args:
        vocab_size: Number of different tokens: keys, values and the insert token.
        seq_len: Number of tokens of an example.
        num_train: Number of training examples.
        num_validation: Number of validation examples.
        num_test: Number of test examples.
        seed: Seed of the map and the examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.Memorization(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    held_out = False
    short_name = "memorize"
    harder: ClassVar = {"vocab_size": (512, 1024, 2048, 4096, 8192)}
    scales: ClassVar = {
        "tiny": {"vocab_size": 16, "seq_len": 8, **TINY},
        "mini": {"vocab_size": 2048, "num_train": 1024, "num_validation": 256, "steps": 150},
    }

    def __init__(
        self,
        vocab_size: Size = 256,
        seq_len: Size = 32,
        num_train: Size = 256,
        num_validation: Size = 1280,
        num_test: Size = 1280,
        seed: Seed = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)

    @staticmethod
    def check_config(config: MemorizationConfig) -> None:
        """Raise a ValueError for sizes that allow no example."""
        if config.seq_len % 2:
            raise ValueError(f"seq_len must be even, not {config.seq_len}")
        if config.vocab_size < 3:
            raise ValueError(f"vocab_size must be at least 3, not {config.vocab_size}")

    def roles(self) -> list[tuple[int, str]]:
        """Return the roles of the tokens, as (end, role) pairs."""
        insert = self.vocab_size - 1
        return [(insert // 2, "key"), (insert, "value"), (self.vocab_size, "answer here")]

    def generate(self, draws: Draws, *, test: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets; see `Task.generate`."""
        insert = self.vocab_size - 1
        num_keys = insert // 2
        scores = Draws(self.seed, MAP_SPLIT, [0]).uniform(insert - num_keys)[0]
        values = num_keys + np.argsort(scores)[:num_keys]  # value of each key
        keys = draws.below(num_keys, self.seq_len // 2)
        inputs = np.stack([keys, np.full_like(keys, insert)], axis=2)
        targets = np.stack([np.full_like(keys, IGNORED), values[keys]], axis=2)
        return inputs.reshape(len(draws), -1), targets.reshape(len(draws), -1)
