"""Recall of keys and values of several tokens."""

from __future__ import annotations

from typing import Any, ClassVar

from ember_ml.backend.host_tasks import fuzzy
from ember_ml.configs.tasks import FuzzyInContextRecallConfig
from ember_ml.mad.tasks.base import Task
from ember_ml.registry import register


@register(
    "tasks/fuzzy-in-context-recall",
    config=FuzzyInContextRecallConfig,
    aliases=["fuzzy_in_context_recall", "fuzzy_recall", "fuzzy-recall"],
)
class FuzzyInContextRecall(Task):
    """Recall where keys and values are several tokens long.

    Keys and values are tuples of one to three different tokens; the test has keys of three.

    Args:
        vocab_size: how many tokens there are.
        seq_len: how many tokens an example has.
        key_size: the most tokens of a key.
        value_size: the most tokens of a value.
        train_on: "all": training learns every next token, as in MAD; "known": only the values that
            can be known, which takes fewer steps.
        num_train: how many examples there are to learn from.
        num_validation: how many to choose a model by.
        num_test: how many to be judged by.
        seed: of all examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.FuzzyInContextRecall(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    harder: ClassVar = {
        "vocab_size": (32, 64, 128),
        "seq_len": (256, 512, 1024),
        "num_train": (6400, 3200, 1600, 800),
    }

    def __init__(
        self,
        vocab_size: int = 16,
        seq_len: int = 128,
        key_size: int = 3,
        value_size: int = 3,
        train_on: str = "all",
        num_train: int = 12800,
        num_validation: int = 1280,
        num_test: int = 1280,
        seed: int = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)
        self.key_size = key_size
        self.value_size = value_size
        self.train_on = train_on

    def generate(self, draws: Any, *, test: bool) -> tuple[Any, Any]:
        """Inputs and targets of examples."""
        return fuzzy.fuzzy(
            draws,
            self.vocab_size,
            self.seq_len,
            key_size=self.key_size,
            value_size=self.value_size,
            test=test,
            masked=test or self.train_on == "known",
        )
