"""Background workers: threads that read batches ahead, each alone or for a process of its own."""

from __future__ import annotations

import contextvars
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ember_ml.data.conversion import Nest, host_nest
from ember_ml.data.errors import WorkerError
from ember_ml.data.processes import Remote
from ember_ml.data.reading import End, Reader, Task

PATIENCE = 5.0
"""Seconds that a closing loader waits for a thread in the middle of an example."""


class Failure(NamedTuple):
    """What a worker could not do: the error if it was raised in this process, and its text."""

    error: BaseException | None
    text: str


class Desk:
    """Where workers take tasks, in order, and leave results, in any order.

    It knows nothing of the loader, so that workers do not keep a forgotten loader alive.
    """

    def __init__(
        self, task: Callable[[int], Task], first: int, end: int | None, ahead: int
    ) -> None:
        self.task = task
        self.ahead = ahead
        self.next = self.wanted = first
        self.end = end
        self.results: dict[int, Any] = {}
        self.closed = False
        # Reentrant: a garbage collection within may close this very desk.
        self.changed = threading.Condition(threading.RLock())

    def take(self) -> Task | None:
        """The next task, once it is not too far ahead; None if there is none any more."""
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

    def leave(self, number: int, result: Any) -> None:
        """Leave the result of a task."""
        with self.changed:
            self.results[number] = result
            if result is End.END:
                self.end = number
            self.changed.notify_all()

    def results_in_order(self) -> Iterator[tuple[int, Any]]:
        """The results one after the other."""
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
        """Give out no further task."""
        with self.changed:
            self.closed = True
            self.results.clear()
            self.changed.notify_all()


class Workers:
    """Several threads at one desk.

    Args:
        desk: the tasks.
        readers: one for each thread; a `Remote` reads in its own process.
    """

    def __init__(self, desk: Desk, readers: list[Reader]) -> None:
        self.desk = desk
        self.remotes = [reader for reader in readers if isinstance(reader, Remote)]
        self.finished = False
        self.threads = [
            threading.Thread(
                # Each thread sees the backend that is active where the loop is.
                target=contextvars.copy_context().run,
                args=(_work, desk, reader),
                name=f"ember-ml data worker {number}",
                daemon=True,
            )
            for number, reader in enumerate(readers)
        ]
        for thread in self.threads:
            thread.start()

    def batches(self) -> Iterator[Nest]:
        """Every batch in order; a worker's error is raised here."""
        for number, result in self.desk.results_in_order():
            if isinstance(result, Failure):
                raise _error(self.desk.task(number), result) from result.error
            yield result
        self.finished = True

    def close(self) -> None:
        """End every worker, in the middle of its work too."""
        self.desk.close()
        if not self.finished:  # a thread that waits for its process wakes at the process's end
            for remote in self.remotes:
                remote.end()
        for thread in self.threads:
            if thread is not threading.current_thread():  # a garbage collection may run in it
                thread.join(PATIENCE)


def _work(desk: Desk, reader: Reader) -> None:
    while (task := desk.take()) is not None:
        desk.leave(task.number, _outcome(reader, task))
    if isinstance(reader, Remote):
        reader.dismiss()


def _outcome(reader: Reader, task: Task) -> Any:
    try:
        result = reader(task)
        return result if result is End.END or isinstance(reader, Remote) else host_nest(result)
    except WorkerError as error:
        return Failure(None, str(error))
    except BaseException as error:  # whatever it is, the loop that waits for it must know
        return Failure(error, "".join(traceback.format_exception(error)))


def _error(task: Task, failure: Failure) -> WorkerError:
    examples = ""
    if task.indices is not None:
        shown = ", ".join(str(index) for index in task.indices[:8])
        examples = f" (examples {shown}{', ...' if len(task.indices) > 8 else ''})"
    return WorkerError(
        f"DataLoader: a worker could not read batch {task.number}{examples}:\n{failure.text}"
    )
