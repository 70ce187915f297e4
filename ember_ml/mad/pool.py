"""Runs in parallel processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import NamedTuple, TypeVar

from ember_ml.backend import set_backend
from ember_ml.backend.devices import set_device
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.run import Point, Result, execute, probe
from ember_ml.mad.store import run_name, setting_of

T = TypeVar("T")
MIN_STEPS_TO_PROBE = 100
"""Minimum number of steps of a run for which the time of a step is measured beforehand."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Environment variables that set the number of threads of linear algebra libraries."""


class Event(NamedTuple):
    """Progress of a run."""

    run: RunConfig
    payload: Point | Result | str | float | None
    """None: the run started. Point: an evaluation. Result: the run is done. str: the error that
    ended the run. float: seconds of a training step, measured before the runs start."""


class ProcessPool:
    """Pool of worker processes; each does one run at a time on one thread.

    If a worker dies, its run counts as failed and the worker is replaced.

    Args:
        workers: Number of processes. Default: the number of cores.
        backend: Backend of the runs.
        device: Device of the backend. Default: its first one.
        checkpoints: Folder of the checkpoints of unfinished runs. Default: a run that is
            interrupted starts again from its first step.
    """

    def __init__(
        self,
        workers: int | None,
        backend: str,
        device: str | None = None,
        *,
        checkpoints: Path | None = None,
    ) -> None:
        self.workers = workers or num_cores()
        self.backend = backend
        self.device = device
        self.checkpoints = checkpoints

    def __call__(self, runs: Sequence[RunConfig]) -> Iterator[Event]:
        """Yield events until all runs are done or failed."""
        queue: list[Job] = [*reversed(runs), *map(Probe, reversed(runs_to_probe(runs)))]
        count = min(self.workers, len(runs))
        workers = [_Worker(self) for _ in range(count)]
        try:
            for worker in workers:
                yield from worker.start(queue.pop())
            while busy := [worker for worker in workers if worker.run is not None]:
                ready = wait([worker.pipe for worker in busy])
                for worker in [worker for worker in busy if worker.pipe in ready]:
                    event = worker.event()
                    if event is not None:
                        yield event
                    if worker.run is None and not worker.process.is_alive():
                        workers[workers.index(worker)] = worker = _Worker(self)
                    if worker.run is None and queue:
                        yield from worker.start(queue.pop())
        finally:
            for worker in workers:
                worker.kill()


class Probe(NamedTuple):
    """Measurement of the time of a training step."""

    run: RunConfig


Job = RunConfig | Probe


def runs_to_probe(runs: Sequence[RunConfig]) -> list[RunConfig]:
    """Return a run of each architecture and setting, if a measurement costs little in comparison.

    Args:
        runs: Runs that a pool is about to do.
    """
    distinct = {(run.architecture, setting_of(run)): run for run in reversed(runs)}
    long_enough = [run for run in distinct.values() if run.steps >= MIN_STEPS_TO_PROBE]
    return long_enough[::-1] if len(runs) > 1 else []


class _Worker:
    """A process and the pipe to it."""

    def __init__(self, pool: ProcessPool) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.run: Job | None = None
        arguments = other, pool.backend, pool.device, pool.checkpoints
        self.process = context.Process(target=_work, args=arguments, daemon=True)
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

    def start(self, job: Job) -> Iterator[Event]:
        """Send a run or a probe to the process."""
        self.run = job
        is_probe = isinstance(job, Probe)
        run = job.run if isinstance(job, Probe) else job
        with contextlib.suppress(OSError):  # a dead process is reported by the next event
            self.pipe.send((is_probe, run.to_dict()))
        if not is_probe:
            yield Event(run, None)

    def event(self) -> Event | None:
        """Return the next event of its run; blocks until there is one.

        Returns:
            The event; None if a probe failed, which its run will report.
        """
        job = self.run
        assert job is not None, "the worker has no run"
        try:
            payload: Point | Result | str | float = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            payload = f"its process died (exit code {self.process.exitcode})"
        if not isinstance(payload, Point):
            self.run = None
        if isinstance(job, Probe):
            return None if isinstance(payload, str) else Event(job.run, payload)
        return Event(job, payload)

    def kill(self) -> None:
        """End the process and close the pipe."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(pipe: Connection, backend: str, device: str | None, checkpoints: Path | None) -> None:
    """Do runs and probes until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    while True:
        try:
            is_probe, run = pipe.recv()
            if is_probe:
                pipe.send(measure(run, backend, device))
            else:
                pipe.send(perform(run, backend, device, pipe.send, checkpoints))
        except (EOFError, BrokenPipeError):  # the parent process has ended
            return


def perform(
    run: dict[str, object],
    backend: str,
    device: str | None,
    observe: Callable[[Point], object] | None = None,
    checkpoints: Path | None = None,
) -> Result | str:
    """Do a run in this process.

    Args:
        run: Config of the run as plain data.
        backend: Backend of the run.
        device: Device of the backend. Default: its first one.
        observe: Called with each evaluation during training.
        checkpoints: Folder of the checkpoints of unfinished runs. It is not used if the sweep's
            folder does not exist on this machine.

    Returns:
        The result, or the traceback of the error it failed with.
    """

    def work(config: RunConfig) -> Result:
        usable = checkpoints is not None and checkpoints.parent.is_dir()
        folder = checkpoints / run_name(config) if usable and checkpoints else None
        return execute(config, observe, folder)

    return _attempt(work, run, backend, device)


def measure(run: dict[str, object], backend: str, device: str | None) -> float | str:
    """Return the seconds of a training step of a run, or the traceback of an error.

    Args:
        run: Config of the run as plain data.
        backend: Backend of the run.
        device: Device of the backend. Default: its first one.
    """
    return _attempt(probe, run, backend, device)


def _attempt(
    work: Callable[[RunConfig], T], run: dict[str, object], backend: str, device: str | None
) -> T | str:
    try:
        set_backend(backend)
        if device is not None:
            set_device(device)
        return work(RunConfig.from_dict(run))
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
