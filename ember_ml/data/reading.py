"""From a task to a batch: what runs in the loader itself, in its threads and in its processes."""

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
    """What is read behind the last batch of a stream."""

    END = enum.auto()


class Task(NamedTuple):
    """A batch to read: its number in the epoch, and the examples' indices (None in a stream)."""

    number: int
    indices: Any


class Reader(Protocol):
    """Reads batches; can be sent to another process as long as the dataset can."""

    def __call__(self, task: Task) -> Nest | End:
        """The batch of a task."""


class IndexReader:
    """Batches of a dataset that has examples by index."""

    def __init__(self, dataset: Dataset, collate: Collate | None) -> None:
        self.dataset = dataset
        self.collate = collate

    def __call__(self, task: Task) -> Nest:
        """The batch of a task."""
        if self.collate is None:
            return self.dataset.batch(task.indices)
        return self.collate(examples(self.dataset, task.indices))


class StreamReader:
    """Batches of a stream, one after the other from batch `start` on."""

    def __init__(
        self, dataset: IterableDataset, collate: Collate | None, plan: Plan, start: int
    ) -> None:
        self.dataset = dataset
        self.collate = collate or default_collate
        self.plan = plan
        self.start = start
        self._examples: Iterator[Nest] | None = None

    def __call__(self, task: Task) -> Nest | End:
        """The next batch, or that there is none."""
        step = self.plan.step
        if self._examples is None:
            self._examples = itertools.islice(self.dataset, self.start * step, None)
        found = list(itertools.islice(self._examples, step))
        if not found or (self.plan.drop_last and len(found) < step):
            return End.END
        begin, end = self.plan.share(len(found))
        return self.collate(found[begin:end])
