"""Worker processes of a loader."""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.data.failures import PATIENCE, Failure, Result
from ember_ml.data.reading import Reader, Task
from ember_ml.data.serving import UNSENDABLE, Request, serve
from ember_ml.data.shared_memory import Receiver

BUFFER = 1 << 16
"""Size in bytes of requests that a connection can hold on every system."""


class Worker:
    """Worker process, and the tasks it has not replied to yet.

    The process is spawned, not forked, because the threads of a framework do not survive a fork. It
    creates tensors on the NumPy backend. It exits when its connection is closed, also if this
    process dies.

    Args:
        reader: The reader to send to the process; must be picklable.
        number: Number of the worker.
        prefetch: Number of batches that it reads ahead.
    """

    def __init__(self, reader: Reader, number: int, prefetch: int) -> None:
        self.number = number
        self.pending: collections.deque[tuple[int, Task]] = collections.deque()  # loop and task
        self.has_replied = self.is_lost = False
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        _enlarge(self.connection)
        self.receiver = Receiver(self.connection, limit=2 * prefetch + 2)
        self.process = context.Process(
            target=serve, args=(theirs, reader), name=f"ember-ml data worker {number}", daemon=True
        )
        try:
            with _interrupts_held():
                self.process.start()
        except UNSENDABLE as error:
            self.connection.close()
            raise ArgumentTypeError(
                "DataLoader: worker_type='process' requires a picklable dataset and collate "
                f"({error}); use functions of a module and host arrays, or worker_type='thread'"
            ) from error
        finally:
            theirs.close()

    @property
    def is_usable(self) -> bool:
        """Whether the process is running and its connection is usable."""
        return not self.is_lost and self.process.is_alive()

    def accepts(self, task: Task) -> bool:
        """Return whether a task can be sent without waiting for the process.

        If both sides waited until the other one receives, neither would continue.

        Args:
            task: Batch to read.
        """
        sizes = [_size(task), *(_size(pending) for _, pending in self.pending)]
        return len(sizes) == 1 or sum(sizes) <= BUFFER

    def send(self, loop: int, task: Task | None) -> None:
        """Send a task, or cancel the tasks of a loop.

        Args:
            loop: Number of the loop.
            task: Batch to read; None to cancel.
        """
        if task is not None:
            self.pending.append((loop, task))
        try:
            self.connection.send(Request(loop, task, self.receiver.collect()))
        except OSError:
            self.is_lost = True

    def receive(self) -> Result | None:
        """Return the reply to the first pending task; None if it was cancelled."""
        try:
            if not self.is_lost:
                reply = self.receiver.receive()
                self.has_replied = True
                return reply
        except (EOFError, OSError):
            self.is_lost = True
        return Failure(None, self._exit_reason())

    def _exit_reason(self) -> str:
        self.process.join(PATIENCE)
        code = self.process.exitcode
        name = f"worker {self.number} (process {self.process.pid})"
        if code is not None and code < 0:
            killed = signal.Signals(-code).name if -code in list(signal.Signals) else str(-code)
            hint = ", perhaps because memory ran out" if killed == "SIGKILL" else ""
            return f"{name} was killed by signal {killed}{hint}"
        hint = "; put the script's main code under `if __name__ == '__main__':`"
        if not hasattr(sys.modules["__main__"], "__file__"):
            hint = "; put classes and functions of a notebook or `python -c` into a module"
        return f"{name} exited with code {code}{'' if self.has_replied else hint}"

    def dismiss(self) -> None:
        """Ask the process to exit if it has nothing to do."""
        with contextlib.suppress(OSError, EOFError):
            while self.pending and not self.is_lost and self.connection.poll():
                self.receive()
                self.pending.popleft()
            if self.has_replied and not self.pending and not self.is_lost:
                self.connection.send(None)
                return
        self.is_lost = True

    def end(self) -> None:
        """Wait for a process that was asked to exit; terminate it otherwise, or kill it."""
        if not self.is_lost:
            self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


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


def _size(task: Task) -> int:
    """Return about the size of a request in bytes."""
    return 512 + 8 * len(task.indices)


def _enlarge(connection: Connection) -> None:
    """Make the buffer of a connection large enough for `BUFFER`; macOS has 8 KB."""
    if hasattr(socket, "AF_UNIX"):
        with socket.socket(fileno=os.dup(connection.fileno())) as channel:
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * BUFFER)
