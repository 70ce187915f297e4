"""In-context recall with noise tokens between the pairs."""

from __future__ import annotations

from typing import ClassVar

from ember_ml.configs.fields import Below1, Seed, Size
from ember_ml.mad.tasks.base import TINY, TrainOn
from ember_ml.mad.tasks.in_context_recall import InContextRecall
from ember_ml.registry import register


@register(
    "tasks/noisy-in-context-recall",
    aliases=["noisy_in_context_recall", "noisy_recall", "noisy-recall"],
)
class NoisyInContextRecall(InContextRecall):
    """In-context recall with noise tokens between the pairs.

    As `InContextRecall`, but a fraction of the pairs is replaced by tokens of a noise vocabulary.

    Args:
        vocab_size: Number of different tokens, including the noise tokens.
        seq_len: Number of tokens of an example.
        multi_query: Whether every value of a repeated key is a target, or only the last one.
        train_on: "all": training predicts every next token, as in MAD; "known": only the values
            that can be known, which takes fewer steps.
        noise_vocab_size: Number of noise tokens, the last ones of the vocabulary.
        frac_noise: Fraction of the pairs that are noise.
        num_train: Number of training examples.
        num_validation: Number of validation examples.
        num_test: Number of test examples.
        seed: Seed of the examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.NoisyInContextRecall(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    short_name = "noisy"
    harder: ClassVar = {
        "vocab_size": (48, 80, 144),
        "seq_len": (256, 512, 1024),
        "num_train": (6400, 3200, 1600, 800),
        "frac_noise": (0.4, 0.6, 0.8),
    }
    scales: ClassVar = {
        "tiny": {"vocab_size": 10, "noise_vocab_size": 2, "seq_len": 8, **TINY},
        "mini": {
            "vocab_size": 24,
            "noise_vocab_size": 8,
            "seq_len": 32,
            "train_on": "known",
            "num_validation": 256,
            "steps": 500,
        },
    }

    def __init__(
        self,
        vocab_size: Size = 32,
        seq_len: Size = 128,
        multi_query: bool = True,
        train_on: TrainOn = "all",
        noise_vocab_size: Size = 16,
        frac_noise: Below1 = 0.2,
        num_train: Size = 12800,
        num_validation: Size = 1280,
        num_test: Size = 1280,
        seed: Seed = 0,
    ) -> None:
        super().__init__(
            vocab_size, seq_len, multi_query, train_on, num_train, num_validation, num_test, seed
        )
        self.noise_vocab_size = noise_vocab_size
        self.frac_noise = frac_noise
