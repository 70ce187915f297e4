"""Selective copying: repeat the tokens of a sequence without the blanks."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ember_ml.configs.fields import Seed, Size
from ember_ml.mad.tasks.base import TINY, Task
from ember_ml.mad.tasks.draws import IGNORED, Draws
from ember_ml.registry import register

if TYPE_CHECKING:
    from ember_ml.configs.tasks import SelectiveCopyingConfig


@register(
    "tasks/selective-copying",
    aliases=["selective_copying", "copying"],
)
class SelectiveCopying(Task):
    """Copying of the tokens of a sequence in order, without the blanks.

    Tokens are placed at random among blanks. After a copy token, the targets are the tokens.

    Args:
        vocab_size: Number of different tokens, including the blank and the copy token.
        seq_len: Number of tokens of an example.
        num_tokens_to_copy: Number of tokens that are not blank.
        num_train: Number of training examples.
        num_validation: Number of validation examples.
        num_test: Number of test examples.
        seed: Seed of the examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.SelectiveCopying(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    short_name = "copy"
    harder: ClassVar = {
        "vocab_size": (32, 64, 128),
        "seq_len": (512, 1024),
        "num_train": (6400, 3200, 1600, 800),
        "num_tokens_to_copy": (32, 64, 96),
    }
    scales: ClassVar = {
        "tiny": {"vocab_size": 8, "seq_len": 12, "num_tokens_to_copy": 2, **TINY},
        "mini": {"seq_len": 32, "num_tokens_to_copy": 8, "num_validation": 256, "steps": 500},
    }

    def __init__(
        self,
        vocab_size: Size = 16,
        seq_len: Size = 256,
        num_tokens_to_copy: Size = 16,
        num_train: Size = 12800,
        num_validation: Size = 1280,
        num_test: Size = 1280,
        seed: Seed = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)
        self.num_tokens_to_copy = num_tokens_to_copy

    @staticmethod
    def check_config(config: SelectiveCopyingConfig) -> None:
        """Raise a ValueError for sizes that allow no example."""
        if config.vocab_size < 3:
            raise ValueError(f"vocab_size must be at least 3, not {config.vocab_size}")
        least = 2 * config.num_tokens_to_copy + 1
        if config.seq_len < least:
            raise ValueError(f"seq_len must be at least {least}, not {config.seq_len}")

    def roles(self) -> list[tuple[int, str]]:
        """Return the roles of the tokens, as (end, role) pairs."""
        copy = self.vocab_size - 1
        return [(copy - 1, "token"), (copy, "blank"), (self.vocab_size, "copy")]

    def generate(self, draws: Draws, *, test: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets; see `Task.generate`."""
        copy, blank, count = self.vocab_size - 1, self.vocab_size - 2, self.num_tokens_to_copy
        tokens = draws.below(blank, count)
        blanks = self.seq_len - 2 * count - 1
        next_token = np.sort(draws.below(count, blanks), axis=1)  # index of the token each precedes
        places = np.arange(count) + np.apply_along_axis(
            lambda row: np.searchsorted(row, np.arange(count), side="right"), 1, next_token
        )
        inputs = np.full((len(draws), self.seq_len), blank)
        np.put_along_axis(inputs, places, tokens, axis=1)
        inputs[:, count + blanks] = copy
        targets = np.full((len(draws), self.seq_len), IGNORED)
        targets[:, -count:] = tokens
        return inputs, targets
