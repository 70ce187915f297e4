"""A reader in a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import signal
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pickle import PicklingError
from typing import Any

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentTypeError
from ember_ml.data import host_arrays
from ember_ml.data.conversion import Nest, host_nest
from ember_ml.data.errors import WorkerError
from ember_ml.data.reading import End, Reader, Task

PATIENCE = 5.0
"""Seconds that a process has to end by itself when there is nothing more to do."""


@dataclasses.dataclass
class Slot:
    """Stands in a message for an array whose bytes follow it."""

    dtype: str
    shape: tuple[int, ...]


class Remote:
    """Sends tasks to a process that holds the reader, and receives host arrays.

    The process is started anew (spawned, not forked: threads of a framework do not survive a fork),
    makes its tensors in host memory, and ends when its connection is closed, by the death of
    this process too.
    """

    def __init__(self, reader: Reader) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, reader), name="ember-ml data worker", daemon=True
        )
        try:
            with _interrupts_held():
                self.process.start()
        except (PicklingError, AttributeError, TypeError) as error:
            self.connection.close()
            raise ArgumentTypeError(
                "DataLoader: worker_type='process' sends the dataset and collate to other "
                f"processes, and these cannot be sent ({error}); functions must be those of a "
                "module, tensors host arrays; or take worker_type='thread'"
            ) from error
        finally:
            theirs.close()

    def __call__(self, task: Task) -> Nest | End:
        """The batch of a task, read over there."""
        try:
            self.connection.send(task)
            good, result = _receive(self.connection)
        except (EOFError, OSError):
            self.process.join(PATIENCE)
            raise WorkerError(
                f"the worker process ended with exit code {self.process.exitcode}; if it never "
                "began, the script that starts it needs an `if __name__ == '__main__':`"
            ) from None
        if not good:
            raise WorkerError(result)
        return result

    def dismiss(self) -> None:
        """Tell the process that there is nothing more to do."""
        with contextlib.suppress(OSError):
            self.connection.send(None)
        self.process.join(PATIENCE)

    def end(self) -> None:
        """End the process, whatever it does."""
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, not even before their own code runs."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # at its start it would lift the hold
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection[Any, Any], reader: Reader) -> None:
    """The loop of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    host_arrays.use_host_backend()
    with contextlib.suppress(EOFError, OSError):
        while (task := connection.recv()) is not None:
            reply = _reply(reader, task)
            try:
                _send(connection, reply)
            except (PicklingError, AttributeError, TypeError) as error:
                connection.send((False, _text(error)))


def _reply(reader: Reader, task: Task) -> tuple[bool, Any]:
    try:
        result = reader(task)
        return True, result if result is End.END else host_nest(result)
    except BaseException as error:
        return False, _text(error)


def _text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _send(connection: Connection[Any, Any], reply: Nest) -> None:
    """Send a nest; its arrays go as they lie in memory."""
    arrays: list[Any] = []

    def slot(leaf: Any) -> Any:
        if not host_arrays.is_plain(leaf):
            return leaf
        arrays.append(leaf)
        return Slot(leaf.dtype.str, leaf.shape)

    connection.send(tree.map_leaves(slot, reply))
    for array in arrays:
        connection.send_bytes(host_arrays.bytes_of(array))


def _receive(connection: Connection[Any, Any]) -> Nest:
    """What `_send` has sent."""

    def fill(leaf: Any) -> Any:
        if not isinstance(leaf, Slot):
            return leaf
        array = host_arrays.empty(leaf.dtype, leaf.shape)
        connection.recv_bytes_into(host_arrays.bytes_of(array))
        return array

    return tree.map_leaves(fill, connection.recv())
