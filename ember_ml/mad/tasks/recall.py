"""Recall of what was shown in the sequence."""

from __future__ import annotations

from typing import Any, ClassVar

from ember_ml.backend.host_tasks import recall
from ember_ml.configs.tasks import InContextRecallConfig, NoisyInContextRecallConfig
from ember_ml.mad.tasks.base import Task
from ember_ml.registry import register


@register(
    "tasks/in-context-recall", config=InContextRecallConfig, aliases=["in_context_recall", "recall"]
)
class InContextRecall(Task):
    """The value of a key that was shown before.

    Keys are bound to values anew in each sequence: k1 v1 k2 v2 k1 [v1]. Training learns every next
    token; the test asks only for values that can be known.

    Args:
        vocab_size: how many tokens there are.
        seq_len: how many tokens an example has.
        multi_query: whether every value of a key shown before is asked for, or only the last one.
        train_on: "all": training learns every next token, as in MAD; "known": only the values that
            can be known, which takes fewer steps.
        num_train: how many examples there are to learn from.
        num_validation: how many to choose a model by.
        num_test: how many to be judged by.
        seed: of all examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.InContextRecall(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    noise_vocab_size = 0
    frac_noise = 0.0
    harder: ClassVar = {
        "vocab_size": (32, 64, 128),
        "seq_len": (256, 512, 1024),
        "num_train": (6400, 3200, 1600, 800),
    }

    def __init__(
        self,
        vocab_size: int = 16,
        seq_len: int = 128,
        multi_query: bool = True,
        train_on: str = "all",
        num_train: int = 12800,
        num_validation: int = 1280,
        num_test: int = 1280,
        seed: int = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)
        self.multi_query = multi_query
        self.train_on = train_on

    def generate(self, draws: Any, *, test: bool) -> tuple[Any, Any]:
        """Inputs and targets of examples."""
        return recall.in_context(
            draws,
            self.vocab_size,
            self.seq_len,
            multi_query=self.multi_query,
            noise_vocab_size=self.noise_vocab_size,
            frac_noise=self.frac_noise,
            masked=test or self.train_on == "known",
        )


@register(
    "tasks/noisy-in-context-recall",
    config=NoisyInContextRecallConfig,
    aliases=["noisy_in_context_recall", "noisy_recall", "noisy-recall"],
)
class NoisyInContextRecall(InContextRecall):
    """The value of a key that was shown before, among tokens that mean nothing.

    As `InContextRecall`, but a share of the pairs is noise from tokens of its own.

    Args:
        vocab_size: how many tokens there are.
        seq_len: how many tokens an example has.
        multi_query: whether every value of a key shown before is asked for, or only the last one.
        noise_vocab_size: how many of the tokens, the last ones, are noise.
        frac_noise: the share of pairs that are noise.
        train_on: "all": training learns every next token, as in MAD; "known": only the values that
            can be known, which takes fewer steps.
        num_train: how many examples there are to learn from.
        num_validation: how many to choose a model by.
        num_test: how many to be judged by.
        seed: of all examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.NoisyInContextRecall(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    harder: ClassVar = {
        "vocab_size": (48, 80, 144),
        "seq_len": (256, 512, 1024),
        "num_train": (6400, 3200, 1600, 800),
        "frac_noise": (0.4, 0.6, 0.8),
    }

    def __init__(
        self,
        vocab_size: int = 32,
        seq_len: int = 128,
        multi_query: bool = True,
        train_on: str = "all",
        noise_vocab_size: int = 16,
        frac_noise: float = 0.2,
        num_train: int = 12800,
        num_validation: int = 1280,
        num_test: int = 1280,
        seed: int = 0,
    ) -> None:
        super().__init__(
            vocab_size, seq_len, multi_query, train_on, num_train, num_validation, num_test, seed
        )
        self.noise_vocab_size = noise_vocab_size
        self.frac_noise = frac_noise
