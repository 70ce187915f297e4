"""Data loader: reproducible, resumable batches of tensors."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, TypeAlias

from ember_ml._core import runtime
from ember_ml._core.dtype import EmberDType
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.backend import selection
from ember_ml.data.conversion import Placer, Pytree
from ember_ml.data.dataset import Dataset
from ember_ml.data.errors import check_integer
from ember_ml.data.plan import Plan, check_shard
from ember_ml.data.pool import Pools
from ember_ml.data.reading import Collate, End, IndexReader, Reader, StreamReader, Task
from ember_ml.data.state import Progress, checked_state
from ember_ml.data.stream import IterableDataset
from ember_ml.data.workers import TaskQueue, Workers

Batches: TypeAlias = Generator[Pytree, None, None]


class DataLoader:
    """Iterable of the batches of a dataset, as pytrees of tensors.

    The order of epoch e depends only on (seed, e): it is the same on every backend and with any
    number of workers. So are random transforms: `dataset.map(transform, seed=...)`. Each loop over
    the loader is one epoch. After a loop that was left early, the next loop starts the next epoch.
    To continue in the middle of an epoch, in this process or another one, use `state_dict` and
    `load_state_dict`.

    Args:
        dataset: A `Dataset`, or a stream (`IterableDataset`), which is resumed by skipping.
        batch_size: Number of examples per batch.
        shuffle: Whether to use a new random order in each epoch. Default: the dataset's order.
        seed: Seed of the random orders.
        drop_last: Whether to drop a last batch that is not full.
        collate: Function from a list of examples to a batch. Default: the dataset's `batch`.
        num_workers: Number of background workers; 0 reads in the loop itself. At most 1 for a
            stream.
        worker_type: "thread", or "process" for Python code that holds the GIL. The dataset is sent
            to the processes when they start, so it must be picklable.
        prefetch: Number of batches that each worker reads ahead.
        persistent: Whether worker processes stay for the next loop. They end with `close`, at the
            end of a `with` block, or with the loader. Call `close` after a change of the dataset.
        shard: (index, count) of this machine among several. All machines have the same number of
            batches. Together, their batches of a step are the batch of one machine with `count`
            times the batch size. No example is read twice, except in a last step with fewer
            examples than machines.
        backend: Backend of the tensors. Default: the active one when the loop starts.

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
        persistent: bool = True,
        shard: tuple[int, int] | None = None,
        backend: str | None = None,
    ) -> None:
        self.dataset = _checked_dataset(dataset, shuffle)
        self.plan = Plan(
            None if isinstance(dataset, IterableDataset) else len(dataset),
            check_integer("DataLoader", "batch_size", batch_size, 1),
            bool(shuffle),
            check_integer("DataLoader", "seed", seed, 0),
            bool(drop_last),
            check_shard(shard),
        )
        if collate is not None and not callable(collate):
            raise ArgumentTypeError(f"DataLoader: collate must be callable, not {collate!r}")
        self.collate = collate
        self.num_workers = check_integer("DataLoader", "num_workers", num_workers, 0)
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
        self.prefetch = check_integer("DataLoader", "prefetch", prefetch, 1)
        self.backend = None if backend is None else selection.check_name(backend)
        self.persistent = bool(persistent)
        self._progress = Progress()
        self._pools = Pools()
        self._select: Callable[[Pytree], Pytree] | None = None

    @property
    def epoch(self) -> int:
        """Current epoch, or the next one between loops; set it to start at another epoch."""
        return self._progress.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._progress = Progress(check_integer("DataLoader", "epoch", epoch, 0))

    def __len__(self) -> int:
        return self.plan.batches

    @property
    def num_batches(self) -> int | None:
        """Number of batches of an epoch; None if it is unknown."""
        return None if self.plan.length is None else self.plan.batches

    def __iter__(self) -> Batches:
        return self.batches()

    def batches(self, dtype: EmberDType | None = None) -> Batches:
        """Return the remaining batches of the epoch; the same as a loop over the loader.

        Args:
            dtype: Dtype of floating-point tensors. Default: that of the data.
        """
        progress = self._progress = self._progress.begun()
        yield from self._batches(progress, dtype)
        progress.finish()

    def once(self, dtype: EmberDType | None = None) -> Batches:
        """Return the batches of the epoch from its start, without changing the loader's state.

        Args:
            dtype: Dtype of floating-point tensors. Default: that of the data.
        """
        return self._batches(Progress(self._progress.epoch), dtype)

    def _batches(self, progress: Progress, dtype: EmberDType | None) -> Batches:
        """Yield the remaining batches of the epoch."""
        placer = Placer(self.backend or runtime.active(), dtype)
        # Also closed if the loop is left early, which raises GeneratorExit here.
        with contextlib.closing(self._host_batches(progress)) as batches:
            for host_batch in batches:
                batch = placer.place(host_batch)
                progress.batches += 1
                yield batch if self._select is None else self._select(batch)

    def _host_batches(self, progress: Progress) -> Batches:
        """Return the remaining batches of the epoch as host arrays."""
        plan, epoch, first = self.plan, progress.epoch, progress.batches
        order = plan.order(epoch)
        stream = plan.length is None
        end = None if stream else plan.batches

        def task(number: int) -> Task:
            indices = () if stream else plan.indices(order, number)
            return Task(epoch, number, indices, number == first)

        if self.num_workers == 0:
            numbers = itertools.count(first) if end is None else range(first, end)
            return _read(self._reader(), map(task, numbers))
        if self.worker_type == "process":
            return self._read_in_processes(task, first, end)
        return self._read_in_threads(TaskQueue(task, first, end, self.num_workers * self.prefetch))

    def _reader(self) -> Reader:
        if isinstance(self.dataset, IterableDataset):
            return StreamReader(self.dataset, self.collate, self.plan)
        return IndexReader(self.dataset, self.collate)

    def _read_in_threads(self, queue: TaskQueue) -> Batches:
        workers = Workers(queue, self._reader(), self.num_workers)
        with contextlib.closing(workers):
            yield from workers.batches()

    def _read_in_processes(
        self, task: Callable[[int], Task], first: int, end: int | None
    ) -> Batches:
        settings = (self.dataset, self.collate, self.num_workers, self.prefetch)
        pool = self._pools.take(self._reader, self.num_workers, self.prefetch, settings)
        try:
            yield from pool.batches(task, first, end)
        finally:
            self._pools.put_back(pool, keep=self.persistent)

    def selecting(self, select: Callable[[Pytree], Pytree]) -> DataLoader:
        """Return a loader of a part of each batch, which reads whole batches.

        Args:
            select: Function from a batch of tensors to the part.
        """
        part = self._copy()
        part._select = select
        return part

    def sharded(self, index: int, count: int) -> DataLoader:
        """Return a loader of one machine's part of each batch, at the same position.

        Args:
            index: Number of the machine.
            count: Number of machines. It must divide the batch size.
        """
        plan = self.plan
        if plan.shard == (index, count):
            return self
        if plan.shard[1] > 1:
            raise ArgumentError(
                f"DataLoader: the loader has shard={plan.shard} already, but this is machine "
                f"{index} of {count}; create it without shard"
            )
        if plan.batch_size % count:
            raise ArgumentError(
                f"DataLoader: batch_size ({plan.batch_size}) must be divisible by {count}, the "
                "number of processes that share a batch"
            )
        part = self._copy()
        part.plan = dataclasses.replace(
            plan, batch_size=plan.batch_size // count, shard=(index, count)
        )
        return part

    def _copy(self) -> DataLoader:
        """Return a loader at the same position, with workers of its own."""
        copied = copy.copy(self)
        copied._pools, copied._progress = Pools(), copy.copy(self._progress)
        return copied

    def close(self) -> None:
        """End the worker processes; the next loop starts new ones."""
        self._pools.close()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_pools": Pools()}  # a copy starts processes of its own

    def leave_epoch(self) -> None:
        """Move to the start of the next epoch if the last loop ended within this one."""
        progress = self._progress.begun()
        self._progress = Progress(progress.epoch, progress.batches)

    def last_indices(self) -> list[int] | None:
        """Return the dataset indices of the last batch of a running loop; None if unknown.

        A stream has no indices.
        """
        number = self._progress.batches - 1
        if self.plan.length is None or number < 0:
            return None
        order = self.plan.order(self._progress.epoch)
        return [int(index) for index in self.plan.indices(order, number)]

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the loader as plain data for JSON, the same for every shard.

        The batch size in it is that of all shards together.

        It counts the batches that the loop received, not those that workers have read ahead.
        """
        progress = self._progress
        return {"epoch": progress.epoch, "batches": progress.batches, **self._identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved position: the next loop yields the rest of that epoch.

        Args:
            state: Result of `state_dict`, from a loader with the same settings. Only the number of
                machines may differ, if their batches together have the same size.
        """
        if isinstance(state, Mapping) and isinstance(shards := state.get("shards"), int):
            state = {**state, "batch_size": state["batch_size"] * shards}  # of an earlier version
            del state["shards"]
        epoch, batches = checked_state(state, self._identity())
        if self.plan.length is not None and batches > len(self):
            raise ArgumentError(
                f"DataLoader: the state is after {batches} batches, but an epoch has {len(self)}"
            )
        self._progress = Progress(epoch, batches)

    def _identity(self) -> dict[str, object]:
        """Return the settings that must be equal in a state that is loaded."""
        plan = dataclasses.asdict(self.plan)
        del plan["shard"]  # the position is the same for any number of machines
        return plan | {"batch_size": self.plan.step}


def _read(reader: Reader, tasks: Iterator[Task]) -> Batches:
    for task in tasks:
        try:
            batch = reader(task)
        except Exception as error:
            error.add_note(f"in batch {task.number} of a DataLoader")
            raise
        if batch is End.END:
            return
        yield batch


def _checked_dataset(dataset: object, shuffle: bool) -> Dataset | IterableDataset:
    if isinstance(dataset, IterableDataset) and shuffle:
        raise ArgumentError(
            "DataLoader: a stream (IterableDataset) cannot be shuffled; use shuffle=False, and "
            "shuffle in the stream itself"
        )
    if isinstance(dataset, (Dataset, IterableDataset)):
        return dataset
    raise ArgumentTypeError(
        f"DataLoader: expected a Dataset or an IterableDataset, not {type(dataset).__name__}; wrap "
        "arrays in an ArrayDataset"
    )
