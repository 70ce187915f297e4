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
    """Batch to read.

    Args:
        epoch: Number of the epoch.
        number: Number of the batch in the epoch.
        indices: Indices of its examples; empty for a stream.
        opens: Whether this is the first batch of a loop.
    """

    epoch: int
    number: int
    indices: Indices
    opens: bool


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
        self._current: tuple[int, Dataset] | None = None  # one value, because threads share it

    def __call__(self, task: Task) -> Pytree:
        """Return the batch of a task."""
        dataset = self._of_epoch(task.epoch)
        if self.collate is None:
            return dataset.batch(task.indices)
        return self.collate(examples(dataset, task.indices))

    def _of_epoch(self, epoch: int) -> Dataset:
        current = self._current
        if current is None or current[0] != epoch:
            self._current = current = epoch, self.dataset.for_epoch(epoch)
        return current[1]


class StreamReader:
    """Reads batches of a stream in order.

    Args:
        dataset: Stream to read.
        collate: Function from a list of examples to a batch. None: `default_collate`.
        plan: Batch size and shard.
        skip: Whether a loop that starts at batch n skips the first n batches of the stream.
    """

    def __init__(
        self, dataset: IterableDataset, collate: Collate | None, plan: Plan, *, skip: bool = True
    ) -> None:
        self.dataset = dataset
        self.collate = collate or default_collate
        self.plan = plan
        self.skip = skip
        self._examples: Iterator[Pytree] = iter(())

    def __call__(self, task: Task) -> Pytree | End:
        """Return the next batch, or `End.END` after the last one."""
        step = self.plan.step
        if task.opens:
            start = task.number * step if self.skip else 0
            self._examples = self.dataset.for_epoch(task.epoch).iterate_from(start)
        items = list(itertools.islice(self._examples, step))
        if not items or (self.plan.drop_last and len(items) < step):
            return End.END
        begin, end = self.plan.share(len(items))
        return self.collate(items[begin:end])
