"""Pools of worker processes, which read the batches of loops."""

from __future__ import annotations

import collections
import contextlib
import itertools
import operator
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import wait

from ember_ml.data.conversion import Pytree
from ember_ml.data.errors import WorkerError
from ember_ml.data.failures import Failure, Result, worker_error
from ember_ml.data.processes import Worker
from ember_ml.data.reading import End, Reader, Task


class ProcessPool:
    """Worker processes that read the batches of one loop at a time, and stay for further loops.

    They end when the pool is closed or collected, and at the end of the program.

    Args:
        reader: Reader of the batches; must be picklable.
        count: Number of processes.
        prefetch: Number of batches that each process reads ahead.
        settings: Settings of the loader that the pool was started with.
    """

    def __init__(
        self, reader: Reader, count: int, prefetch: int, settings: tuple[object, ...]
    ) -> None:
        self.settings = settings
        self.ahead = count * prefetch
        self.workers: list[Worker] = []
        self._loop = 0
        self._unsent: collections.deque[Task] = collections.deque()
        self._in_transfer = False
        self._owner = os.getpid()
        self._end = weakref.finalize(self, _end, self.workers, self._owner)
        try:
            for number in range(count):
                self.workers.append(Worker(reader, number, prefetch))
        except BaseException:
            self.close()
            raise

    @property
    def is_usable(self) -> bool:
        """Whether the pool can run another loop in this process."""
        return (
            self._end.alive
            and not self._in_transfer
            and self._owner == os.getpid()
            and all(worker.is_usable for worker in self.workers)
        )

    def batches(self, task: Callable[[int], Task], first: int, end: int | None) -> Iterator[Pytree]:
        """Yield batches in order; raise the error of a worker.

        Args:
            task: Function from the number of a batch to its task.
            first: Number of the first batch.
            end: Number after the last batch; None if unknown (a stream).
        """
        self._loop += 1
        self._unsent.clear()
        results: dict[int, Result] = {}
        ahead = itertools.count(first) if end is None else iter(range(first, end))
        try:
            self._send(map(task, itertools.islice(ahead, self.ahead)))
            for number in itertools.count(first) if end is None else range(first, end):
                while number not in results:
                    self._receive(results)
                    self._send()
                result = results.pop(number)
                if result is End.END:
                    return
                if isinstance(result, Failure):
                    raise worker_error(task(number), result)
                self._send(map(task, itertools.islice(ahead, 1)))
                yield result
                del result  # releases its shared memory before the wait for the next batch
        finally:
            self._cancel()

    def _send(self, tasks: Iterable[Task] = ()) -> None:
        """Send tasks, each to the worker with the fewest; what it does not accept waits."""
        self._unsent.extend(tasks)
        with self._transfer():
            while self._unsent:
                worker = min(self.workers, key=lambda worker: len(worker.pending))
                if not worker.accepts(self._unsent[0]):
                    return
                worker.send(self._loop, self._unsent.popleft())

    def _receive(self, results: dict[int, Result]) -> None:
        """Wait for replies, and add those of this loop to the results."""
        with self._transfer():
            busy = [worker for worker in self.workers if worker.pending]
            lost = [worker for worker in busy if worker.is_lost]
            readable = [] if lost else wait([worker.connection for worker in busy])
            for worker in lost or [worker for worker in busy if worker.connection in readable]:
                reply = worker.receive()
                loop, task = worker.pending.popleft()
                if loop == self._loop:
                    results[task.number] = reply

    @contextlib.contextmanager
    def _transfer(self) -> Iterator[None]:
        """Record that an interrupt here would leave a part of a message in a connection."""
        if not self._end.alive:
            raise WorkerError("DataLoader: the loader was closed while a loop was running")
        self._in_transfer = True
        yield
        self._in_transfer = False

    def _cancel(self) -> None:
        """Discard the tasks of the loop; close the pool if it cannot run another loop."""
        if not self.is_usable:
            self.close()
            return
        for worker in self.workers:
            if worker.pending:
                with self._transfer():
                    worker.send(self._loop, None)

    def close(self) -> None:
        """End the processes."""
        if self._in_transfer:
            for worker in self.workers:
                worker.is_lost = True
        self._end()


def _end(workers: list[Worker], owner: int) -> None:
    """End the processes, unless this is a fork of the process that started them."""
    if os.getpid() != owner:
        return
    for worker in workers:
        worker.dismiss()
    for worker in workers:
        worker.end()


class Pools:
    """Pools of a loader: one that is idle, and those that loops use."""

    def __init__(self) -> None:
        self._idle: ProcessPool | None = None
        self._started: weakref.WeakSet[ProcessPool] = weakref.WeakSet()

    def take(
        self, reader: Callable[[], Reader], count: int, prefetch: int, settings: tuple[object, ...]
    ) -> ProcessPool:
        """Return the idle pool if it has the same settings, otherwise a new one.

        Args:
            reader: Function that returns the reader of a new pool.
            count: Number of processes.
            prefetch: Number of batches that each process reads ahead.
            settings: Objects that a pool must have been started with.
        """
        pool, self._idle = self._idle, None
        if pool is not None:
            if pool.is_usable and all(map(operator.is_, pool.settings, settings)):
                return pool
            pool.close()
        pool = ProcessPool(reader(), count, prefetch, settings)
        self._started.add(pool)
        return pool

    def put_back(self, pool: ProcessPool, *, keep: bool) -> None:
        """Take a pool back after a loop.

        Args:
            pool: The pool.
            keep: Whether to keep it for the next loop.
        """
        if keep and pool.is_usable and self._idle is None:
            self._idle = pool
        else:
            pool.close()

    def close(self) -> None:
        """End all processes, also those of running loops."""
        self._idle = None
        for pool in list(self._started):
            pool.close()

    def __reduce__(self) -> tuple[type[Pools], tuple[()]]:
        return Pools, ()  # processes cannot be pickled
