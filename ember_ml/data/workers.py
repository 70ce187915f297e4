"""Worker threads of a loader."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator

from ember_ml.data.conversion import Pytree, to_host_tree
from ember_ml.data.failures import PATIENCE, Failure, Result, format_error, worker_error
from ember_ml.data.reading import End, Reader, Task


class TaskQueue:
    """Queue of tasks, taken in order, and their results, which arrive in any order.

    It has no reference to the loader, so workers do not keep an unused loader alive.

    Args:
        task: Function from the number of a batch to its task.
        first: Number of the first batch.
        end: Number after the last batch; None if unknown (a stream).
        ahead: Maximum number of batches to read ahead.
    """

    def __init__(
        self, task: Callable[[int], Task], first: int, end: int | None, ahead: int
    ) -> None:
        self.task = task
        self.ahead = ahead
        self.next = self.wanted = first
        self.end = end
        self.results: dict[int, Result] = {}
        self.closed = False
        # Reentrant, because a garbage collection inside the lock may close this queue.
        self.changed = threading.Condition(threading.RLock())

    def take(self) -> Task | None:
        """Return the next task, once it is not too far ahead; None after the last one."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.closed or self._over(self.next) or self.next < self.wanted + self.ahead
            )
            if self.closed or self._over(self.next):
                return None
            self.next += 1
            return self.task(self.next - 1)

    def _over(self, number: int) -> bool:
        return self.end is not None and number >= self.end

    def put_result(self, number: int, result: Result) -> None:
        """Store the result of a task.

        Args:
            number: Number of the batch.
            result: Result of reading it.
        """
        with self.changed:
            self.results[number] = result
            if result is End.END:
                self.end = number
            self.changed.notify_all()

    def results_in_order(self) -> Iterator[tuple[int, Result]]:
        """Yield the results in the order of their tasks."""
        while True:
            with self.changed:
                self.changed.wait_for(
                    lambda: self.wanted in self.results or self._over(self.wanted)
                )
                if self._over(self.wanted):
                    return
                result = self.results.pop(self.wanted)
                self.wanted += 1
                self.changed.notify_all()
            yield self.wanted - 1, result

    def close(self) -> None:
        """Return no more tasks, and discard the results."""
        with self.changed:
            self.closed = True
            self.results.clear()
            self.changed.notify_all()


class Workers:
    """Threads that read the batches of one task queue.

    Args:
        queue: Tasks and results.
        reader: Reader of the batches.
        count: Number of threads.
    """

    def __init__(self, queue: TaskQueue, reader: Reader, count: int) -> None:
        self.queue = queue
        self.threads = [
            threading.Thread(
                # Each thread uses the backend that is active in the loop.
                target=contextvars.copy_context().run,
                args=(_work, queue, reader),
                name=f"ember-ml data worker {number}",
                daemon=True,
            )
            for number in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def batches(self) -> Iterator[Pytree]:
        """Yield every batch in order; raise the error of a worker."""
        for number, result in self.queue.results_in_order():
            if isinstance(result, Failure):
                raise worker_error(self.queue.task(number), result) from result.error
            yield result

    def close(self) -> None:
        """Stop all workers, also those that are reading."""
        self.queue.close()
        for thread in self.threads:
            # A garbage collection may call this method in a worker.
            if thread is not threading.current_thread():
                thread.join(PATIENCE)


def _work(queue: TaskQueue, reader: Reader) -> None:
    while (task := queue.take()) is not None:
        queue.put_result(task.number, _outcome(reader, task))


def _outcome(reader: Reader, task: Task) -> Result:
    try:
        result = reader(task)
        return result if result is End.END else to_host_tree(result)
    except BaseException as error:  # passed on to the loop that waits for the result
        return Failure(error, format_error(error))
