"""Recall of values that were bound to keys earlier in the sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ember_ml.configs.fields import Seed, Size
from ember_ml.mad.tasks.base import TINY, Task, TrainOn
from ember_ml.mad.tasks.draws import IGNORED, Draws, seen_before
from ember_ml.registry import register

if TYPE_CHECKING:
    from ember_ml.configs.tasks import InContextRecallConfig


@register("tasks/in-context-recall", aliases=["in_context_recall", "recall"])
class InContextRecall(Task):
    """Recall of the value of a key that occurred earlier in the sequence.

    Each sequence has new key-value pairs: k1 v1 k2 v2 k1 [v1]. Training predicts every next
    token; evaluation only uses the values that can be known.

    Args:
        vocab_size: Number of different tokens.
        seq_len: Number of tokens of an example.
        multi_query: Whether every value of a repeated key is a target, or only the last one.
        train_on: "all": training predicts every next token, as in MAD; "known": only the values
            that can be known, which takes fewer steps.
        num_train: Number of training examples.
        num_validation: Number of validation examples.
        num_test: Number of test examples.
        seed: Seed of the examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.InContextRecall(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    short_name = "recall"
    noise_vocab_size = 0
    frac_noise = 0.0
    harder: ClassVar = {
        "vocab_size": (32, 64, 128),
        "seq_len": (256, 512, 1024),
        "num_train": (6400, 3200, 1600, 800),
    }
    scales: ClassVar = {
        "tiny": {"vocab_size": 8, "seq_len": 8, **TINY},
        "mini": {
            "vocab_size": 16,
            "seq_len": 32,
            "train_on": "known",
            "num_validation": 256,
            "steps": 500,
        },
    }

    def __init__(
        self,
        vocab_size: Size = 16,
        seq_len: Size = 128,
        multi_query: bool = True,
        train_on: TrainOn = "all",
        num_train: Size = 12800,
        num_validation: Size = 1280,
        num_test: Size = 1280,
        seed: Seed = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)
        self.multi_query = multi_query
        self.train_on = train_on

    @staticmethod
    def check_config(config: InContextRecallConfig) -> None:
        """Raise a ValueError for sizes that allow no example."""
        if config.seq_len < 4 or config.seq_len % 2:
            raise ValueError(f"seq_len must be even and at least 4, not {config.seq_len}")
        noise = getattr(config, "noise_vocab_size", 0)
        least = 2 + (not config.multi_query) + noise  # a key, a value, the copy prefix, noise
        if config.vocab_size < least:
            raise ValueError(f"vocab_size must be at least {least}, not {config.vocab_size}")

    @property
    def num_symbols(self) -> int:
        """Number of keys and values."""
        return self.vocab_size - self.noise_vocab_size - (not self.multi_query)

    def roles(self) -> list[tuple[int, str]]:
        """Return the roles of the tokens, as (end, role) pairs."""
        symbols = self.num_symbols
        return [
            (symbols // 2, "key"),
            (symbols, "value"),
            (self.vocab_size - self.noise_vocab_size, "copy"),
            (self.vocab_size, "noise"),
        ]

    def generate(self, draws: Draws, *, test: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets; see `Task.generate`."""
        rows, symbols, noise_vocab_size = len(draws), self.num_symbols, self.noise_vocab_size
        num_keys = symbols // 2
        pairs = self.seq_len // 2 - 1
        keys = draws.below(num_keys, pairs)
        values = num_keys + draws.below(symbols - num_keys, num_keys)  # value of each key
        noisy = draws.uniform(pairs) < self.frac_noise
        noisy[np.arange(rows), draws.below(pairs)] = False  # keep at least one pair
        noise = self.vocab_size - noise_vocab_size + draws.below(max(1, noise_vocab_size), pairs, 2)
        body = np.stack([keys, np.take_along_axis(values, keys, axis=1)], axis=2)
        body = np.where(noisy[..., None], noise, body) if noise_vocab_size else body

        counted = np.where(noisy, num_keys, keys)  # noise counts as one extra key, never a target
        shown = np.zeros((rows, num_keys + 1), bool)
        np.put_along_axis(shown, counted, True, axis=1)
        last = np.argmax(np.where(shown[:, :num_keys], draws.uniform(num_keys), -1.0), axis=1)
        answer = np.take_along_axis(values, last[:, None], axis=1)

        known = np.zeros(body.shape, bool)
        known[..., 1] = seen_before(counted) & ~noisy & self.multi_query
        parts = [body.reshape(rows, -1), last[:, None], answer]
        if not self.multi_query:
            parts.insert(1, np.full((rows, 1), symbols))  # copy prefix
        tokens = np.concatenate(parts, axis=1)
        is_target = np.full(tokens.shape, not test and self.train_on == "all")
        is_target[:, : 2 * pairs] |= known.reshape(rows, -1)
        is_target[:, -1] = True
        return tokens[:, :-1], np.where(is_target, tokens, IGNORED)[:, 1:]
