"""Memorisation, compression, and selective copying."""

from __future__ import annotations

from typing import Any, ClassVar

from ember_ml.backend.host_tasks import copying
from ember_ml.configs.tasks import CompressionConfig, MemorizationConfig, SelectiveCopyingConfig
from ember_ml.mad.tasks.base import Task
from ember_ml.registry import register


@register("tasks/memorization", config=MemorizationConfig, aliases=["memorisation"])
class Memorization(Task):
    """The value of a key in a fixed map, which training must learn by heart.

    The map is the same in every sequence, and nothing in a sequence tells it.

    Args:
        vocab_size: how many tokens there are.
        seq_len: how many tokens an example has.
        num_train: how many examples there are to learn from.
        num_validation: how many to choose a model by.
        num_test: how many to be judged by.
        seed: of all examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.Memorization(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    harder: ClassVar = {"vocab_size": (512, 1024, 2048, 4096, 8192)}
    held_out = False

    def __init__(
        self,
        vocab_size: int = 256,
        seq_len: int = 32,
        num_train: int = 256,
        num_validation: int = 1280,
        num_test: int = 1280,
        seed: int = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)

    def generate(self, draws: Any, *, test: bool) -> tuple[Any, Any]:
        """Inputs and targets of examples."""
        return copying.memorized(draws, self.vocab_size, self.seq_len, self.seed)


@register("tasks/compression", config=CompressionConfig, aliases=[])
class Compression(Task):
    """All tokens of a sequence, to be read from the features of its last one.

    The model is an auto-encoder.

    Args:
        vocab_size: how many tokens there are.
        seq_len: how many tokens an example has.
        num_train: how many examples there are to learn from.
        num_validation: how many to choose a model by.
        num_test: how many to be judged by.
        seed: of all examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.Compression(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    harder: ClassVar = {
        "vocab_size": (32, 64, 128),
        "seq_len": (64, 128, 256),
        "num_train": (6400, 3200, 1600, 800),
    }
    model = "models/autoencoder"

    def __init__(
        self,
        vocab_size: int = 16,
        seq_len: int = 32,
        num_train: int = 12800,
        num_validation: int = 1280,
        num_test: int = 1280,
        seed: int = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)

    def generate(self, draws: Any, *, test: bool) -> tuple[Any, Any]:
        """Inputs and targets of examples."""
        return copying.compressed(draws, self.vocab_size, self.seq_len)


@register(
    "tasks/selective-copying",
    config=SelectiveCopyingConfig,
    aliases=["selective_copying", "copying"],
)
class SelectiveCopying(Task):
    """The tokens that are not blank, to be said again in their order.

    Tokens stand among blanks at random places; after a copy token they are to be said.

    Args:
        vocab_size: how many tokens there are.
        seq_len: how many tokens an example has.
        num_tokens_to_copy: how many tokens are not blank.
        num_train: how many examples there are to learn from.
        num_validation: how many to choose a model by.
        num_test: how many to be judged by.
        seed: of all examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.SelectiveCopying(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    harder: ClassVar = {
        "vocab_size": (32, 64, 128),
        "seq_len": (512, 1024),
        "num_train": (6400, 3200, 1600, 800),
        "num_tokens_to_copy": (32, 64, 96),
    }

    def __init__(
        self,
        vocab_size: int = 16,
        seq_len: int = 256,
        num_tokens_to_copy: int = 16,
        num_train: int = 12800,
        num_validation: int = 1280,
        num_test: int = 1280,
        seed: int = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)
        self.num_tokens_to_copy = num_tokens_to_copy

    def generate(self, draws: Any, *, test: bool) -> tuple[Any, Any]:
        """Inputs and targets of examples."""
        return copying.copied(draws, self.vocab_size, self.seq_len, self.num_tokens_to_copy)
