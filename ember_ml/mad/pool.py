"""Runs in parallel processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.run import Point, Result, execute

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Environment variables that set the number of threads of linear algebra libraries."""


class Event(NamedTuple):
    """Progress of a run."""

    run: RunConfig
    what: Point | Result | str | None
    """None: it started. Point: an evaluation. Result: it is done. str: the error it failed with."""


class ProcessPool:
    """Pool of worker processes; each does one run at a time on one thread.

    If a worker dies, its run counts as failed and the worker is replaced.

    Args:
        workers: Number of processes. Default: the number of cores.
        backend: Backend of the runs.
        device: Device of the backend. Default: its first one.
    """

    def __init__(self, workers: int | None, backend: str, device: str | None = None) -> None:
        self.workers = workers or num_cores()
        self.backend = backend
        self.device = device

    def __call__(self, runs: Sequence[RunConfig]) -> Iterator[Event]:
        """Yield events until all runs are done or failed."""
        queue = list(reversed(runs))
        count = min(self.workers, len(runs))
        workers = [_Worker(self.backend, self.device) for _ in range(count)]
        try:
            for worker in workers:
                yield worker.start(queue.pop())
            while busy := [worker for worker in workers if worker.run is not None]:
                ready = wait([worker.pipe for worker in busy])
                for worker in [worker for worker in busy if worker.pipe in ready]:
                    event = worker.event()
                    yield event
                    if isinstance(event.what, str) and not worker.process.is_alive():
                        workers[workers.index(worker)] = worker = _Worker(self.backend, self.device)
                    if worker.run is None and queue:
                        yield worker.start(queue.pop())
        finally:
            for worker in workers:
                worker.kill()


class _Worker:
    """A process and the pipe to it."""

    def __init__(self, backend: str, device: str | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.run: RunConfig | None = None
        self.process = context.Process(target=_work, args=(other, backend, device), daemon=True)
        before = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, "1"))  # libraries read it when they are loaded
        try:
            self.process.start()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        other.close()

    def start(self, run: RunConfig) -> Event:
        """Send a run to the process."""
        self.run = run
        with contextlib.suppress(OSError):  # a dead process is reported by the next event
            self.pipe.send(run.to_dict())
        return Event(run, None)

    def event(self) -> Event:
        """Return the next event of its run; blocks until there is one."""
        run = self.run
        assert run is not None, "the worker has no run"
        try:
            what: Point | Result | str = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            what = f"its process died (exit code {self.process.exitcode})"
        if not isinstance(what, Point):
            self.run = None
        return Event(run, what)

    def kill(self) -> None:
        """End the process and close the pipe."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(pipe: Connection, backend: str, device: str | None) -> None:
    """Do runs until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    while True:
        try:
            pipe.send(perform(pipe.recv(), backend, device, pipe.send))
        except (EOFError, BrokenPipeError):  # the parent process has ended
            return


def perform(
    run: dict[str, object],
    backend: str,
    device: str | None,
    observe: Callable[[Point], object] | None = None,
) -> Result | str:
    """Do a run in this process.

    Args:
        run: Config of the run as plain data.
        backend: Backend of the run.
        device: Device of the backend. Default: its first one.
        observe: Called with each evaluation during training.

    Returns:
        The result, or the traceback of the error it failed with.
    """
    import ember_ml

    try:
        ember_ml.set_backend(backend)
        if device is not None:
            ember_ml.set_device(device)
        return execute(RunConfig.from_dict(run), observe)
    except BrokenPipeError:
        raise
    except Exception:
        return traceback.format_exc()


def num_cores() -> int:
    """Return the number of cores this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not available on macOS and Windows
        return os.cpu_count() or 1
