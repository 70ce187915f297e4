"""Configs of the synthetic tasks."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Below1, Flag, Seed, Size

TrainOn = Literal["all", "known"]
"""Whether training learns every next token, or only what can be known."""


class TaskConfig(Config):
    """What all tasks have."""

    vocab_size: Size
    seq_len: Size
    num_train: Size = 12800
    num_validation: Size = 1280
    num_test: Size = 1280
    seed: Seed = 0

    def need(self, holds: bool, rule: str) -> None:
        """Refuse sizes that no example can have."""
        if not holds:
            raise ValueError(f"{self.component.partition('/')[2]}: {rule}")


class InContextRecallConfig(TaskConfig):
    """The value of a key that was shown before."""

    component: ClassVar[str] = "tasks/in-context-recall"
    vocab_size: Size = 16
    seq_len: Size = 128
    multi_query: Flag = True
    train_on: TrainOn = "all"

    @property
    def least_vocabulary(self) -> int:
        """A key and a value, and the prefix of the last key if only that is asked for."""
        return 2 + (not self.multi_query)

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.need(self.seq_len >= 4, "seq_len must be at least 4")
        self.need(self.seq_len % 2 == 0, "seq_len must be even")
        least = self.least_vocabulary
        self.need(self.vocab_size >= least, f"vocab_size must be at least {least}")
        return self


class NoisyInContextRecallConfig(InContextRecallConfig):
    """The value of a key that was shown before, among noise."""

    component: ClassVar[str] = "tasks/noisy-in-context-recall"
    vocab_size: Size = 32
    noise_vocab_size: Size = 16
    frac_noise: Below1 = 0.2

    @property
    def least_vocabulary(self) -> int:
        """The noise, and what recall needs without it."""
        return self.noise_vocab_size + super().least_vocabulary


class FuzzyInContextRecallConfig(TaskConfig):
    """Recall of keys and values of several tokens."""

    component: ClassVar[str] = "tasks/fuzzy-in-context-recall"
    vocab_size: Size = 16
    seq_len: Size = 128
    key_size: Size = 3
    value_size: Size = 3
    train_on: TrainOn = "all"

    @model_validator(mode="after")
    def _check(self) -> Self:
        most = max(self.key_size, self.value_size)
        self.need(self.vocab_size >= 2 * most + 1, f"vocab_size must be at least {2 * most + 1}")
        least = 3 * (self.key_size + self.value_size)
        self.need(self.seq_len >= least, f"seq_len must be at least {least}")
        return self


class MemorizationConfig(TaskConfig):
    """The value of a key in a fixed map."""

    component: ClassVar[str] = "tasks/memorization"
    vocab_size: Size = 256
    seq_len: Size = 32
    num_train: Size = 256

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.need(self.seq_len % 2 == 0, "seq_len must be even")
        self.need(self.vocab_size >= 3, "vocab_size must be at least 3")
        return self


class CompressionConfig(TaskConfig):
    """All tokens, from the features of the last one."""

    component: ClassVar[str] = "tasks/compression"
    vocab_size: Size = 16
    seq_len: Size = 32

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.need(self.seq_len >= 2, "seq_len must be at least 2")
        self.need(self.vocab_size >= 2, "vocab_size must be at least 2")
        return self


class SelectiveCopyingConfig(TaskConfig):
    """The tokens that are not blank, in their order."""

    component: ClassVar[str] = "tasks/selective-copying"
    vocab_size: Size = 16
    seq_len: Size = 256
    num_tokens_to_copy: Size = 16

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.need(self.vocab_size >= 3, "vocab_size must be at least 3")
        least = 2 * self.num_tokens_to_copy + 1
        self.need(self.seq_len >= least, f"seq_len must be at least {least}")
        return self
