"""Jobs in parallel processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from ember_ml._core.errors import ArgumentError
from ember_ml.data.errors import check_integer
from ember_ml.training.sweeps.jobs import Event, Job, ParentEndedError, Source, perform

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Environment variables that set the number of threads of linear algebra libraries."""
CHECK_EVERY = 1.0
"""Seconds between two checks that the workers are alive."""


class ProcessRunner:
    """Worker processes; each does one job at a time on one thread.

    If a worker dies, its job fails and the worker is replaced. Workers end with their parent.

    Args:
        workers: Number of processes. Default: the number of cores.
        backend: Backend of the jobs. Default: the active one of each process.
        device: Device of the backend. Default: its first one.

    Example:
        >>> from ember_ml.training.sweeps import ProcessRunner
        >>> ProcessRunner(2, "numpy").workers
        2
    """

    def __init__(
        self, workers: int | None = None, backend: str | None = None, device: str | None = None
    ) -> None:
        if workers is not None:
            workers = check_integer("ProcessRunner", "workers", workers, least=1)
        self.workers = workers or num_cores()
        self.backend = backend
        self.device = device

    def __call__(self, source: Source) -> Iterator[Event]:
        """Yield events until the source has no more jobs and none is active."""
        workers: list[_Worker] = []
        try:
            while True:
                yield from self._give_jobs(workers, source)
                busy = [worker for worker in workers if worker.job is not None]
                if not busy:
                    return
                for worker in _ready(busy):
                    event = worker.event()
                    yield event
                    worker.answer(event)
                    if worker.job is None and not worker.process.is_alive():
                        worker.kill()
                        workers.remove(worker)
        finally:
            for worker in workers:
                worker.kill()

    def _give_jobs(self, workers: list[_Worker], source: Source) -> Iterator[Event]:
        """Send jobs to idle workers, and start workers while there are jobs for them."""
        while True:
            idle = next((worker for worker in workers if worker.job is None), None)
            if idle is None and len(workers) == self.workers:
                return
            job = source()
            if job is None:
                return
            if idle is None:
                idle = _Worker(self.backend, self.device)
                workers.append(idle)
            idle.start(job)
            yield Event(job, "started")


def _ready(workers: list[_Worker]) -> list[_Worker]:
    """Wait for workers that have an event or have died, and return them.

    The pipe of a dead worker stays open if processes that it started have inherited it.
    """
    while True:
        pipes = wait([worker.pipe for worker in workers], CHECK_EVERY)
        ready = [worker for worker in workers if worker.pipe in pipes]
        if ready := ready or [each for each in workers if not each.process.is_alive()]:
            return ready


class _Worker:
    """A process and the pipe to it."""

    def __init__(self, backend: str | None, device: str | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.job: Job | None = None
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

    def start(self, job: Job) -> None:
        """Send a job to the process."""
        self.job = job
        try:
            self.pipe.send((job.work, job.data, job.answered))
        except OSError:
            pass  # a dead process is reported by the next event
        except Exception as error:  # pickle raises many types
            raise ArgumentError(
                f"ProcessRunner: the data of a job of {job.work} cannot be sent to another "
                f"process: {error}"
            ) from error

    def event(self) -> Event:
        """Return the next event of its job; blocks until there is one."""
        job = self.job
        assert job is not None, "the worker has no job"
        try:
            if not self.process.is_alive() and not self.pipe.poll():
                raise EOFError
            kind, value = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            kind, value = "failed", f"its process died (exit code {self.process.exitcode})"
        except Exception:  # a value that cannot be restored in this process
            kind, value = "failed", traceback.format_exc()
        if kind != "report":
            self.job = None
        return Event(job, kind, value)

    def answer(self, event: Event) -> None:
        """Tell the process whether its job should continue, if it waits for that."""
        if event.kind == "report" and event.job.answered:
            with contextlib.suppress(OSError):
                self.pipe.send(not event.stopped)

    def kill(self) -> None:
        """End the process and close the pipe."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(pipe: Connection, backend: str | None, device: str | None) -> None:
    """Do jobs until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            work, data, answered = pipe.recv()
            report = _Reporter(pipe, answered)
            _send(pipe, perform(work, data, report, backend, device))
        except (EOFError, BrokenPipeError, ParentEndedError):
            return


class _Reporter:
    """Sends values to the parent process."""

    def __init__(self, pipe: Connection, answered: bool) -> None:
        self.pipe = pipe
        self.answered = answered

    def __call__(self, value: Any) -> bool:
        """Send a value; return whether the job should continue."""
        try:
            self.pipe.send(("report", value))
            return bool(self.pipe.recv()) if self.answered else True
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            raise ParentEndedError from error


def _send(pipe: Connection, outcome: tuple[str, Any]) -> None:
    try:
        pipe.send(tuple(outcome))
    except OSError as error:
        raise ParentEndedError from error
    except Exception:  # the result cannot be sent to another process
        pipe.send(("failed", traceback.format_exc()))


def _end_with_parent() -> None:
    """End this process as soon as the parent has ended, also if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def num_cores() -> int:
    """Return the number of cores this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not available on macOS and Windows
        return os.cpu_count() or 1
