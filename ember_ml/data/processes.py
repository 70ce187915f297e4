"""Reader in a worker process."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import signal
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pickle import PicklingError

import numpy as np

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentTypeError
from ember_ml.backend import selection
from ember_ml.data.conversion import Pytree, to_host_tree
from ember_ml.data.errors import WorkerError
from ember_ml.data.reading import End, Reader, Task

PATIENCE = 5.0
"""Seconds to wait for a process or thread to finish by itself."""


@dataclasses.dataclass
class Slot:
    """Placeholder in a message for an array whose bytes follow.

    Args:
        dtype: Dtype with byte order, as in `np.dtype.str`.
        shape: Shape of the array.
    """

    dtype: str
    shape: tuple[int, ...]


class Remote:
    """Reader that sends tasks to a worker process and receives host arrays.

    The process is spawned, not forked, because the threads of a framework do not survive a fork. It
    creates tensors on the NumPy backend. It exits when its connection is closed, also if this
    process dies.

    Args:
        reader: The reader to send to the process; must be picklable.
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
                "DataLoader: worker_type='process' requires a picklable dataset and collate "
                f"({error}); use functions of a module and host arrays, or worker_type='thread'"
            ) from error
        finally:
            theirs.close()

    def __call__(self, task: Task) -> Pytree | End:
        """Return the batch of a task, read by the process.

        Args:
            task: Batch to read.
        """
        try:
            self.connection.send(task)
            good, result = _receive(self.connection)
        except (EOFError, OSError):
            self.process.join(PATIENCE)
            raise WorkerError(
                f"the worker process exited with code {self.process.exitcode}; if it never "
                "started, put the script's main code under `if __name__ == '__main__':`"
            ) from None
        if not good:
            raise WorkerError(result)
        return result

    def dismiss(self) -> None:
        """Ask the process to exit, and wait for it."""
        with contextlib.suppress(OSError):
            self.connection.send(None)
        self.process.join(PATIENCE)

    def end(self) -> None:
        """Terminate the process; kill it if it does not respond."""
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block SIGINT, so that processes started here ignore Ctrl-C from their first instruction."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it would unblock SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, reader: Reader) -> None:
    """Run the loop of the worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    selection.set_backend("numpy")
    with contextlib.suppress(EOFError, OSError):
        while (task := connection.recv()) is not None:
            reply = _reply(reader, task)
            try:
                _send(connection, reply)
            except (PicklingError, AttributeError, TypeError) as error:
                connection.send((False, format_error(error)))


def _reply(reader: Reader, task: Task) -> tuple[bool, Pytree | End]:
    try:
        result = reader(task)
        return True, result if result is End.END else to_host_tree(result)
    except BaseException as error:
        return False, format_error(error)


def format_error(error: BaseException) -> str:
    """Return an error with its traceback as text.

    Args:
        error: Error that was raised.
    """
    return "".join(traceback.format_exception(error))


def _send(connection: Connection, reply: Pytree) -> None:
    """Send a pytree; its arrays are sent as raw bytes."""
    arrays: list[np.ndarray] = []

    def slot(leaf: object) -> object:
        if not isinstance(leaf, np.ndarray) or leaf.dtype.kind not in "biufc" or not leaf.size:
            return leaf
        arrays.append(leaf)
        return Slot(leaf.dtype.str, leaf.shape)

    connection.send(tree.map_leaves(slot, reply))
    for array in arrays:
        connection.send_bytes(_bytes(array))


def _receive(connection: Connection) -> Pytree:
    """Return the pytree sent by `_send`."""

    def fill(leaf: object) -> object:
        if not isinstance(leaf, Slot):
            return leaf
        array = np.empty(leaf.shape, leaf.dtype)
        connection.recv_bytes_into(_bytes(array))
        return array

    return tree.map_leaves(fill, connection.recv())


def _bytes(array: np.ndarray) -> memoryview:
    """Return the bytes of an array in C order, without a copy if it is contiguous."""
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
