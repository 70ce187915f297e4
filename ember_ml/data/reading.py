"""Readers: read the batch of a task, in the loader itself, a thread or a process."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ember_ml.data.collate import default_collate
from ember_ml.data.conversion import Indices, Pytree
from ember_ml.data.dataset import Dataset, examples
from ember_ml.data.plan import Plan
from ember_ml.data.stream import IterableDataset

Collate = Callable[[Sequence[Pytree]], Pytree]


class End(enum.Enum):
    """Marks the end of a stream."""

    END = enum.auto()


class Task(NamedTuple):
    """Batch to read: its number in the epoch, and the indices of its examples (none: a stream)."""

    number: int
    indices: Indices


class Reader(Protocol):
    """Reads batches; picklable if the dataset is."""

    def __call__(self, task: Task) -> Pytree | End:
        """Return the batch of a task.

        Args:
            task: Batch to read.
        """


class IndexReader:
    """Reads batches of a `Dataset` by index.

    Args:
        dataset: Dataset to read.
        collate: Function from a list of examples to a batch. None: the dataset's `batch`.
    """

    def __init__(self, dataset: Dataset, collate: Collate | None) -> None:
        self.dataset = dataset
        self.collate = collate

    def __call__(self, task: Task) -> Pytree:
        """Return the batch of a task."""
        if self.collate is None:
            return self.dataset.batch(task.indices)
        return self.collate(examples(self.dataset, task.indices))


class StreamReader:
    """Reads batches of a stream in order.

    Args:
        dataset: Stream to read.
        collate: Function from a list of examples to a batch. None: `default_collate`.
        plan: Batch size and shard.
        start: Number of the first batch to read.
    """

    def __init__(
        self, dataset: IterableDataset, collate: Collate | None, plan: Plan, start: int
    ) -> None:
        self.dataset = dataset
        self.collate = collate or default_collate
        self.plan = plan
        self.start = start
        self._examples: Iterator[Pytree] | None = None

    def __call__(self, task: Task) -> Pytree | End:
        """Return the next batch, or `End.END` after the last one."""
        step = self.plan.step
        if self._examples is None:
            self._examples = itertools.islice(self.dataset, self.start * step, None)
        items = list(itertools.islice(self._examples, step))
        if not items or (self.plan.drop_last and len(items) < step):
            return End.END
        begin, end = self.plan.share(len(items))
        return self.collate(items[begin:end])
