"""Readers: read the batch of a task, in the loader itself, a thread or a process."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from ember_ml.data.collate import default_collate
from ember_ml.data.conversion import Nest
from ember_ml.data.dataset import Dataset, examples
from ember_ml.data.plan import Plan
from ember_ml.data.stream import IterableDataset

Collate = Callable[[Sequence[Nest]], Nest]


class End(enum.Enum):
    """Marks the end of a stream."""

    END = enum.auto()


class Task(NamedTuple):
    """Batch to read: its number in the epoch, and the indices of its examples (None: a stream)."""

    number: int
    indices: Any


class Reader(Protocol):
    """Reads batches; picklable if the dataset is."""

    def __call__(self, task: Task) -> Nest | End:
        """Return the batch of a task."""


class IndexReader:
    """Reads batches of a `Dataset` by index."""

    def __init__(self, dataset: Dataset, collate: Collate | None) -> None:
        self.dataset = dataset
        self.collate = collate

    def __call__(self, task: Task) -> Nest:
        """Return the batch of a task."""
        if self.collate is None:
            return self.dataset.batch(task.indices)
        return self.collate(examples(self.dataset, task.indices))


class StreamReader:
    """Reads batches of a stream in order, from batch `start` on."""

    def __init__(
        self, dataset: IterableDataset, collate: Collate | None, plan: Plan, start: int
    ) -> None:
        self.dataset = dataset
        self.collate = collate or default_collate
        self.plan = plan
        self.start = start
        self._examples: Iterator[Nest] | None = None

    def __call__(self, task: Task) -> Nest | End:
        """Return the next batch, or `End.END` after the last one."""
        step = self.plan.step
        if self._examples is None:
            self._examples = itertools.islice(self.dataset, self.start * step, None)
        items = list(itertools.islice(self._examples, step))
        if not items or (self.plan.drop_last and len(items) < step):
            return End.END
        begin, end = self.plan.share(len(items))
        return self.collate(items[begin:end])
