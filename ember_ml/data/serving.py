"""Loop of a worker process."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing.connection import Connection
from pickle import PicklingError
from queue import SimpleQueue
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
    """Requests that have arrived, received in a thread so that the other side never waits.

    Args:
        connection: Connection to the process of the loader.
        sender: Sender of the batches.
    """

    def __init__(self, connection: Connection, sender: Sender) -> None:
        self.connection = connection
        self.sender = sender
        self.cancelled = 0
        self.requests: SimpleQueue[Request | None] = SimpleQueue()
        threading.Thread(target=self._listen, name="ember-ml data requests", daemon=True).start()

    def _listen(self) -> None:
        try:
            while (request := self.connection.recv()) is not None:
                self.sender.release(request.released)
                if request.task is None:
                    self.cancelled = request.loop
                else:
                    self.requests.put(request)
        except (EOFError, OSError):
            os._exit(1)  # the process of the loader has ended
        self.requests.put(None)


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
    while (request := inbox.requests.get()) is not None:
        reply = None if request.loop <= inbox.cancelled else _read(reader, request.task)
        try:
            sender.send(reply)
        except UNSENDABLE as error:
            sender.send(Failure(None, format_error(error)))


def _read(reader: Reader, task: Task | None) -> Pytree | End | Failure:
    assert task is not None
    try:
        result = reader(task)
        return result if result is End.END else to_host_tree(result)
    except BaseException as error:
        return Failure(None, format_error(error))
