"""Runs side by side, in processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.run import Point, Result, execute, from_plain, to_plain

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""What tells the libraries of linear algebra how many threads to use."""


class Event(NamedTuple):
    """Something that happened to a run."""

    run: RunConfig
    what: Point | Result | str | None
    """None: it began. A point: a look at it. A result: it is done. Text: the error it ended in."""


class ProcessPool:
    """Processes that each do one run at a time, on one thread.

    A process that dies takes its run with it, which counts as failed, and is replaced.

    Args:
        workers: how many; as many as there are cores if not given.
        backend: where they compute.
        device: on which device of it, if it matters.
    """

    def __init__(self, workers: int | None, backend: str, device: str | None = None) -> None:
        self.workers = workers or cores()
        self.backend = backend
        self.device = device

    def __call__(self, runs: Sequence[RunConfig]) -> Iterator[Event]:
        """What happens, until all runs are done or failed."""
        waiting = list(reversed(runs))
        crew = [_Worker(self.backend, self.device) for _ in range(min(self.workers, len(runs)))]
        try:
            for worker in crew:
                yield worker.give(waiting.pop())
            while busy := [worker for worker in crew if worker.run is not None]:
                ready = wait([worker.pipe for worker in busy])
                for worker in [worker for worker in busy if worker.pipe in ready]:
                    event = worker.event()
                    yield event
                    if isinstance(event.what, str) and not worker.process.is_alive():
                        crew[crew.index(worker)] = worker = _Worker(self.backend, self.device)
                    if worker.run is None and waiting:
                        yield worker.give(waiting.pop())
        finally:
            for worker in crew:
                worker.end()


class _Worker:
    """A process and the pipe to it."""

    def __init__(self, backend: str, device: str | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.run: RunConfig | None = None
        self.process = context.Process(target=_work, args=(other, backend, device), daemon=True)
        before = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, "1"))  # read when the libraries are loaded
        try:
            self.process.start()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        other.close()

    def give(self, run: RunConfig) -> Event:
        """Have it do a run."""
        self.run = run
        with contextlib.suppress(OSError):  # it has died already, which the next event says
            self.pipe.send(run.to_dict())
        return Event(run, None)

    def event(self) -> Event:
        """What it says next."""
        run = self.run
        assert run is not None, "a worker without a run says nothing"
        try:
            kind, content = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            self.run = None
            return Event(run, f"its process died (exit code {self.process.exitcode})")
        if kind == "point":
            return Event(run, Point(*content))
        self.run = None
        return outcome(run, (kind, content))

    def end(self) -> None:
        """Stop it, whatever it does."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(pipe: Connection, backend: str, device: str | None) -> None:
    """Do runs until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who started this process

    def observe(point: Point) -> None:
        pipe.send(("point", tuple(point)))

    while True:
        try:
            pipe.send(perform(pipe.recv(), backend, device, observe))
        except (EOFError, BrokenPipeError):  # nobody is waiting any more
            return


def perform(
    run: dict[str, Any],
    backend: str,
    device: str | None,
    observe: Callable[[Point], Any] | None = None,
) -> tuple[str, Any]:
    """Do a run here: ("done", its result as plain data), or ("failed", why)."""
    import ember_ml

    try:
        ember_ml.set_backend(backend)
        if device is not None:
            ember_ml.set_device(device)
        return "done", to_plain(execute(RunConfig.from_dict(run), observe))
    except BrokenPipeError:
        raise
    except Exception:
        return "failed", traceback.format_exc()


def outcome(run: RunConfig, answer: tuple[str, Any]) -> Event:
    """What `perform` has given, as an event."""
    kind, content = answer
    return Event(run, content if kind == "failed" else from_plain(content))


def cores() -> int:
    """How many processes can compute at once."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1
