"""Base class of the synthetic tasks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from ember_ml._core.errors import EmberError
from ember_ml.configs.base import Config
from ember_ml.data import ArrayDataset, Dataset
from ember_ml.mad.tasks.draws import Draws, generate, generate_disjoint

SPLITS = ("train", "validation", "test")
TINY = {"num_train": 32, "num_validation": 8, "num_test": 8, "steps": 4}
"""Numbers of examples and steps that the built-in tasks share at the scale "tiny"."""
TrainOn = Literal["all", "known"]
"""Targets of training: every next token, or only the values that can be known."""


class TaskError(EmberError, ValueError):
    """Raised for an unknown split, or if a task has too few different examples."""


class Task(Dataset):
    """Synthetic task: sequences of tokens, with a target token at some positions.

    Each example depends only on the seed, the split and its index. No example of the validation
    and test splits occurs in the training split, unless `held_out` is false. As a dataset, a task
    is its training split.

    A task is one file: a subclass that defines `generate`, registered with
    `@register("tasks/name")`. It may override the class attributes and `roles`.

    Args:
        vocab_size: Number of different tokens.
        seq_len: Number of tokens of an example.
        num_train: Number of training examples.
        num_validation: Number of validation examples, used to select hyperparameters.
        num_test: Number of test examples.
        seed: Seed of the examples.
    """

    config: Config
    """Config the task was built from."""
    model: ClassVar[str] = "models/language_model"
    """Registry name of the kind of model that solves the task."""
    held_out: ClassVar[bool] = True
    """Whether examples of the validation and test splits must not occur in the training split."""
    short_name: ClassVar[str] = ""
    """Name for a narrow table column; the registry name if empty."""
    harder: ClassVar[dict[str, tuple[float, ...]]] = {}
    """Field name -> values that make the task harder, each with the other fields at defaults."""
    scales: ClassVar[dict[str, dict[str, Any]]] = {}
    """Scale name -> field values and number of training "steps" at that scale."""

    def __init__(
        self,
        vocab_size: int,
        seq_len: int,
        num_train: int,
        num_validation: int,
        num_test: int,
        seed: int,
    ) -> None:
        self.vocab_size = vocab_size
        self.seq_len = seq_len
        self.counts = {"train": num_train, "validation": num_validation, "test": num_test}
        self.seed = seed
        self._arrays: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    @property
    def name(self) -> str:
        """Registry name without the kind."""
        return self.config.component.partition("/")[2]

    def generate(self, draws: Draws, *, test: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets, integer arrays of shape (examples, length).

        Args:
            draws: Random numbers of the examples.
            test: Whether the examples are for evaluation, which may use fewer targets.
        """
        raise NotImplementedError(f"{type(self).__name__} must define generate()")

    def roles(self) -> list[tuple[int, str]]:
        """Return the roles of the tokens, as (end, role) pairs in increasing order of `end`.

        Tokens from the previous pair's `end` up to, but not including, `end` have the role.
        """
        return [(self.vocab_size, "token")]

    def roles_of(self, tokens: Sequence[int]) -> list[str]:
        """Return the role of each token."""
        roles = self.roles()
        return [next(role for end, role in roles if token < end) for token in tokens]

    @functools.cached_property
    def length(self) -> int:
        """Number of tokens a model reads; may differ from `seq_len` by one."""
        inputs, _ = self.generate(Draws(self.seed, 0, [0]), test=True)
        return int(inputs.shape[1])

    def split(self, name: str) -> ArrayDataset:
        """Return the examples of "train", "validation" or "test"."""
        return ArrayDataset(*self.arrays(name))

    @functools.cached_property
    def train(self) -> ArrayDataset:
        """Training examples."""
        return self.split("train")

    @property
    def validation(self) -> ArrayDataset:
        """Validation examples."""
        return self.split("validation")

    @property
    def test(self) -> ArrayDataset:
        """Test examples."""
        return self.split("test")

    def arrays(self, split: str) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets of a split, NumPy arrays of shape (examples, length)."""
        if split not in SPLITS:
            raise TaskError(f"{self.name}: split must be one of {', '.join(SPLITS)}, not {split!r}")
        if split not in self._arrays:
            self._arrays[split] = self._generate_split(split)
        return self._arrays[split]

    def _generate_split(self, split: str) -> tuple[np.ndarray, np.ndarray]:
        number, count, test = SPLITS.index(split), self.counts[split], split != "train"

        def examples(indices: np.ndarray, attempt: int) -> tuple[np.ndarray, np.ndarray]:
            return self.generate(Draws(self.seed, number, indices, attempt), test=test)

        if not test or not self.held_out:
            return generate(examples, count)
        others = [self.arrays(other)[0] for other in SPLITS[:number]]
        arrays = generate_disjoint(examples, count, others)
        if arrays is None:
            raise TaskError(
                f"{self.name}: there are not {count} examples for {split} that occur in no other "
                f"split, with vocab_size={self.vocab_size} and seq_len={self.seq_len}; use a "
                "larger vocab_size or seq_len, or fewer examples"
            )
        return arrays

    def __len__(self) -> int:
        return self.counts["train"]

    def __getitem__(self, index: int) -> Any:
        return self.train[index]

    def batch(self, indices: np.ndarray | Sequence[int]) -> Any:
        """Return the training examples at the indices."""
        return self.train.batch(indices)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(vocab_size={self.vocab_size}, seq_len={self.seq_len})"
