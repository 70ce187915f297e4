"""The base of the tasks."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

from ember_ml._core.errors import EmberError
from ember_ml.backend.host_tasks import splits
from ember_ml.data import ArrayDataset, Dataset

SPLITS = ("train", "validation", "test")


class TaskError(EmberError, ValueError):
    """A task that cannot be made."""


class Task(Dataset):
    """A synthetic task: sequences of tokens, and which token is to be said where.

    Each example is a function of the seed, the split and its index alone; no example of the
    validation and test splits is in the training split, unless the task is to know it by heart. As
    a dataset, a task is its training split.

    Subclasses write `generate`.
    """

    config: Any = None
    """What it was built by."""
    model: ClassVar[str] = "models/language_model"
    """What kind of model it asks for."""
    held_out: ClassVar[bool] = True
    """Whether the test asks for examples that training has not shown."""
    harder: ClassVar[dict[str, tuple[float, ...]]] = {}
    """Values of each field that make it more difficult, the others being as they are by default."""
    scales: ClassVar[dict[str, dict[str, Any]]] = {}
    """Its sizes, and "steps", in scales that do not know it; its defaults elsewhere."""

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
        self._made: dict[str, tuple[Any, Any]] = {}

    @property
    def name(self) -> str:
        """Its name in the registry, without the kind."""
        return str(self.config.component.partition("/")[2])

    def generate(self, draws: Any, *, test: bool) -> tuple[Any, Any]:
        """Inputs and targets, (examples, length) each, as host arrays.

        Args:
            draws: the random numbers of the examples, `ember_ml.backend.host_tasks.draws.Draws`.
            test: whether they are to be tested on, which may ask for less, or for harder ones.
        """
        raise NotImplementedError(f"{type(self).__name__} has no generate()")

    @functools.cached_property
    def length(self) -> int:
        """How many tokens a model reads, which may be one less or more than seq_len."""
        inputs, _ = self.generate(splits.draws(self.seed, 0, [0], 0), test=True)
        return int(inputs.shape[1])

    def split(self, name: str) -> ArrayDataset:
        """The examples of "train", "validation" or "test"."""
        return ArrayDataset(*self.arrays(name))

    @functools.cached_property
    def train(self) -> ArrayDataset:
        """The examples to learn from."""
        return self.split("train")

    @property
    def validation(self) -> ArrayDataset:
        """The examples to choose a model by."""
        return self.split("validation")

    @property
    def test(self) -> ArrayDataset:
        """The examples to be judged by."""
        return self.split("test")

    def arrays(self, split: str) -> tuple[Any, Any]:
        """Inputs and targets of a split, (examples, length) each, as host arrays."""
        if split not in SPLITS:
            raise TaskError(f"{self.name}: a split is one of {', '.join(SPLITS)}, not {split!r}")
        if split not in self._made:
            self._made[split] = self._make(split)
        return self._made[split]

    def _make(self, split: str) -> tuple[Any, Any]:
        number, count, test = SPLITS.index(split), self.counts[split], split != "train"

        def make(indices: Any, attempt: int) -> tuple[Any, Any]:
            return self.generate(splits.draws(self.seed, number, indices, attempt), test=test)

        if not test or not self.held_out:
            return splits.generate(make, count)
        found = splits.generate_apart(make, count, [self.arrays(s)[0] for s in SPLITS[:number]])
        if found is None:
            raise TaskError(
                f"{self.name}: there are not {count} examples for {split} that are in no other "
                f"split, with vocab_size={self.vocab_size} and seq_len={self.seq_len}"
            )
        return found

    def __len__(self) -> int:
        return self.counts["train"]

    def __getitem__(self, index: int) -> Any:
        return self.train[index]

    def batch(self, indices: Any) -> Any:
        """The training examples at the indices."""
        return self.train.batch(indices)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(vocab_size={self.vocab_size}, seq_len={self.seq_len})"
