"""Batches of tensors from a dataset, in an order that can be repeated and resumed."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Generator, Iterator
from typing import Any, TypeAlias

from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.backend import selection
from ember_ml.data import _checks
from ember_ml.data.conversion import Nest, Placer
from ember_ml.data.dataset import Dataset
from ember_ml.data.plan import Plan, check_shard
from ember_ml.data.processes import Remote
from ember_ml.data.reading import Collate, End, IndexReader, Reader, StreamReader, Task
from ember_ml.data.state import Progress, checked_state
from ember_ml.data.stream import IterableDataset
from ember_ml.data.workers import Desk, Workers

Batches: TypeAlias = Generator[Nest, None, None]


class DataLoader:
    """Batches of a dataset as nests of tensors, epoch by epoch.

    The order of epoch e is a function of (seed, e) alone: the same on every backend and with any
    number of workers. Each loop over the loader is an epoch; after one that was left before its end
    the next loop begins the next epoch. To go on in the middle of an epoch, in this process or in
    another, load the state.

    Args:
        dataset: a `Dataset`, or a stream (`IterableDataset`), which is resumed by skipping.
        batch_size: examples of a batch.
        shuffle: a new random order each epoch; else the dataset's own.
        seed: of the orders.
        drop_last: leave out a last batch that is not full.
        collate: from a list of examples to a batch; else the dataset's own `batch`.
        num_workers: background workers; 0 reads in the loop itself. A stream has at most one.
        worker_type: "thread", or "process" for Python code that holds the interpreter's lock. To a
            process (a new one each epoch) the dataset is sent, so it must be picklable.
        prefetch: batches that each worker reads ahead.
        shard: (index, count) of this machine among several. All have equally many batches, and
            one step of all of them is a batch of one machine with a `count` times larger batch
            size. Nothing is read twice, but for a last step with fewer examples than machines.
        backend: where tensors are made; else the active backend at the time of the loop.

    Example:
        >>> from ember_ml.data import ArrayDataset
        >>> loader = DataLoader(ArrayDataset([1, 2, 3, 4, 5], [0, 1, 0, 1, 0]), batch_size=2)
        >>> [x.tolist() for x, y in loader]
        [[1, 2], [3, 4], [5]]
        >>> loader.epoch
        1
    """

    def __init__(
        self,
        dataset: Dataset | IterableDataset,
        batch_size: int = 32,
        *,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        collate: Collate | None = None,
        num_workers: int = 0,
        worker_type: str = "thread",
        prefetch: int = 2,
        shard: tuple[int, int] | None = None,
        backend: str | None = None,
    ) -> None:
        self.dataset = _checked_dataset(dataset, shuffle)
        self.plan = Plan(
            None if isinstance(dataset, IterableDataset) else len(dataset),
            _checks.integer("DataLoader", "batch_size", batch_size, 1),
            bool(shuffle),
            _checks.integer("DataLoader", "seed", seed, 0),
            bool(drop_last),
            check_shard(shard),
        )
        if collate is not None and not callable(collate):
            raise ArgumentTypeError(f"DataLoader: collate must be callable, not {collate!r}")
        self.collate = collate
        self.num_workers = _checks.integer("DataLoader", "num_workers", num_workers, 0)
        if self.plan.length is None and self.num_workers > 1:
            raise ArgumentError(
                "DataLoader: a stream (IterableDataset) is read by one worker; num_workers must be "
                f"0 or 1, not {num_workers}"
            )
        if worker_type not in ("thread", "process"):
            raise ArgumentError(
                f"DataLoader: worker_type must be 'thread' or 'process', not {worker_type!r}"
            )
        self.worker_type = worker_type
        self.prefetch = _checks.integer("DataLoader", "prefetch", prefetch, 1)
        self.backend = None if backend is None else selection.check_name(backend)
        self._progress = Progress()

    @property
    def epoch(self) -> int:
        """The epoch under way, or the next one; set it to begin another."""
        return self._progress.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._progress = Progress(_checks.integer("DataLoader", "epoch", epoch, 0))

    def __len__(self) -> int:
        return self.plan.batches

    def __iter__(self) -> Batches:
        progress = self._progress = self._progress.begun()
        yield from self._batches(progress)
        progress.finish()

    def once(self) -> Batches:
        """The batches of the epoch from its beginning; the loader's own place stays as it is."""
        return self._batches(Progress(self._progress.epoch))

    def _batches(self, progress: Progress) -> Batches:
        """The epoch's remaining batches."""
        placer = Placer(self.backend or runtime.active())
        # Closed also when the loop is left: then the generator gets a GeneratorExit.
        with contextlib.closing(self._host_batches(progress)) as batches:
            for nest in batches:
                batch = placer.nest(nest)
                progress.batches += 1
                yield batch

    def _host_batches(self, progress: Progress) -> Batches:
        """The epoch's remaining batches, as the dataset gives them."""
        plan, first = self.plan, progress.batches
        order = plan.order(progress.epoch)
        stream = plan.length is None
        end = None if stream else plan.batches

        def task(number: int) -> Task:
            return Task(number, None if stream else plan.indices(order, number))

        if self.num_workers == 0:
            return _read(self._reader(first), map(task, _count(first, end)))
        return self._read_ahead(Desk(task, first, end, self.num_workers * self.prefetch), first)

    def _reader(self, first: int) -> Reader:
        if isinstance(self.dataset, IterableDataset):
            return StreamReader(self.dataset, self.collate, self.plan, first)
        return IndexReader(self.dataset, self.collate)

    def _read_ahead(self, desk: Desk, first: int) -> Batches:
        with contextlib.ExitStack() as stack:
            stack.callback(desk.close)
            readers = [self._reader(first)] * self.num_workers
            if self.worker_type == "process":
                readers = [_started(stack, reader) for reader in readers]
            workers = Workers(desk, readers)
            stack.callback(workers.close)
            yield from workers.batches()

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is: plain data for JSON, the same for every shard.

        It counts the batches that a loop has received; those read ahead are not lost by it.
        """
        where = {"epoch": self._progress.epoch, "batches": self._progress.batches}
        return where | self._identity()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another loader was: the next loop yields that epoch's remaining batches."""
        epoch, batches = checked_state(state, self._identity())
        if self.plan.length is not None and batches > len(self):
            raise ArgumentError(
                f"DataLoader: the state is behind {batches} batches; an epoch has {len(self)}"
            )
        self._progress = Progress(epoch, batches)

    def _identity(self) -> dict[str, Any]:
        """What a state must agree with to be of use."""
        plan = dataclasses.asdict(self.plan)
        plan["shards"] = plan.pop("shard")[1]
        return plan


def _started(stack: contextlib.ExitStack, reader: Reader) -> Reader:
    remote = Remote(reader)
    stack.callback(remote.end)
    return remote


def _count(first: int, end: int | None) -> Iterator[int]:
    return itertools.count(first) if end is None else iter(range(first, end))


def _read(reader: Reader, tasks: Iterator[Task]) -> Batches:
    for task in tasks:
        try:
            nest = reader(task)
        except Exception as error:
            error.add_note(f"in batch {task.number} of a DataLoader")
            raise
        if nest is End.END:
            return
        yield nest


def _checked_dataset(dataset: Any, shuffle: bool) -> Dataset | IterableDataset:
    if isinstance(dataset, IterableDataset) and shuffle:
        raise ArgumentError(
            "DataLoader: a stream (IterableDataset) cannot be shuffled; shuffle=False, or shuffle "
            "in the stream itself"
        )
    if isinstance(dataset, (Dataset, IterableDataset)):
        return dataset
    raise ArgumentTypeError(
        "DataLoader: needs a Dataset or an IterableDataset (arrays are one by ArrayDataset), not "
        f"{type(dataset).__name__}"
    )
