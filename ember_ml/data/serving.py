"""Loop of a worker process."""

from __future__ import annotations

import collections
import contextlib
import signal
from multiprocessing.connection import Connection
from pickle import PicklingError
from typing import NamedTuple

from ember_ml.backend import selection
from ember_ml.data.conversion import Pytree, to_host_tree
from ember_ml.data.failures import Failure, format_error
from ember_ml.data.reading import End, Reader, Task
from ember_ml.data.shared_memory import Sender

UNSENDABLE = (PicklingError, AttributeError, TypeError)
"""Errors of pickling."""


class Request(NamedTuple):
    """Message to a worker process.

    Args:
        loop: Number of the loop.
        task: Batch to read; None cancels the tasks of the loop that have not started.
        released: Segments of shared memory to use again.
    """

    loop: int
    task: Task | None
    released: list[int]


class Inbox:
    """Requests that have arrived.

    No thread receives them: it would take the GIL from the reader, and each switch takes long on a
    busy machine.

    Args:
        connection: Connection to the process of the loader.
        sender: Sender of the batches.
    """

    def __init__(self, connection: Connection, sender: Sender) -> None:
        self.connection = connection
        self.sender = sender
        self._tasks: collections.deque[tuple[int, Task]] = collections.deque()
        self._cancelled = 0

    def take(self) -> Task | None:
        """Return the next task; None if it was cancelled.

        Raises:
            EOFError: The process of the loader has ended the connection.
        """
        while not self._tasks or self.connection.poll():
            self._add(self.connection.recv())
        loop, task = self._tasks.popleft()
        return None if loop <= self._cancelled else task

    def _add(self, request: Request | None) -> None:
        if request is None:
            raise EOFError
        self.sender.release(request.released)
        if request.task is None:
            self._cancelled = request.loop
        else:
            self._tasks.append((request.loop, request.task))


def serve(connection: Connection, reader: Reader) -> None:
    """Reply to each request with a batch, the end of the stream, a failure or None if cancelled.

    Args:
        connection: Connection to the process of the loader.
        reader: Reader of the batches.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    selection.set_backend("numpy")
    sender = Sender(connection)
    inbox = Inbox(connection, sender)
    with contextlib.suppress(EOFError, OSError):
        while True:
            task = inbox.take()
            reply = None if task is None else _read(reader, task)
            try:
                sender.send(reply)
            except UNSENDABLE as error:
                sender.send(Failure(None, format_error(error)))


def _read(reader: Reader, task: Task) -> Pytree | End | Failure:
    try:
        result = reader(task)
        return result if result is End.END else to_host_tree(result)
    except BaseException as error:
        return Failure(None, format_error(error))
