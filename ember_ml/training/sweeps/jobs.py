"""Jobs of a sweep as plain data, and the events that a runner yields while it does them."""

from __future__ import annotations

import dataclasses
import importlib
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from ember_ml._core.errors import ArgumentError
from ember_ml.backend import set_backend
from ember_ml.backend.devices import set_device

Report = Callable[[Any], bool]
"""Sends a value from a job to the parent; returns whether the job should continue."""
Work = Callable[[Any, Report], Any]
"""Does a job: takes its data and a function to report with, and returns the result."""


class Job(NamedTuple):
    """A unit of work, described by plain data so that another process or machine can do it."""

    work: str
    """Function that does the job, as "module:function"; see `work_name`."""
    data: Any
    """First argument of the function. The second one is a `Report`."""
    key: Any = None
    """Identifies the job to whoever reads the events. It stays in the parent process."""
    answered: bool = False
    """Whether a report waits for the parent's answer; otherwise it returns True immediately."""


@dataclasses.dataclass(slots=True)
class Event:
    """Progress of a job."""

    job: Job
    kind: Literal["started", "report", "done", "failed"]
    value: Any = None
    """The value that the job reported, its result, or the traceback of its error."""
    stopped: bool = False

    def stop(self) -> None:
        """Ask the job to stop: its report returns False, if its reports are answered."""
        self.stopped = True


Source = Callable[[], Job | None]
"""Returns the next job; called whenever a worker is free. None means that there is no job now: the
source is called again after a job has ended, and the sweep ends if none is active."""


class Runner(Protocol):
    """Does the jobs of a source and yields their events."""

    def __call__(self, source: Source) -> Iterator[Event]:
        """Yield events until the source has no more jobs and none is active."""


def work_name(function: str | Callable[..., Any]) -> str:
    """Return the name of a function as "module:function", by which other processes import it.

    Args:
        function: A function at the top level of a module, or its name.

    Example:
        >>> from ember_ml.training.sweeps import num_cores, work_name
        >>> work_name(num_cores)
        'ember_ml.training.sweeps.processes:num_cores'
    """
    if isinstance(function, str):
        if find_work(function) is None:
            raise ArgumentError(f"{function!r} is not a function: write module:function")
        return function
    name = f"{function.__module__}:{getattr(function, '__qualname__', '')}"
    if find_work(name) is not function:
        raise ArgumentError(
            f"{function!r} cannot be imported by other processes: define it with def at the top "
            "level of a module, and pass values in the data of the job"
        )
    return name


def find_work(name: str) -> Work | None:
    """Return the function of a name; None if there is no such function.

    Args:
        name: Name as "module:function".
    """
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except (ImportError, ValueError):
        return None
    return found if callable(found) else None


class Outcome(NamedTuple):
    """End of a job."""

    kind: Literal["done", "failed"]
    value: Any
    """The result, or the traceback of the error."""


class ParentEndedError(BaseException):
    """Raised by a report if the parent process has ended; not an `Exception`, to end the job."""


def perform(
    work: str, data: object, report: Report, backend: str | None, device: str | None
) -> Outcome:
    """Do a job in this process.

    Args:
        work: Function that does the job, as "module:function".
        data: Data of the job.
        report: Called by the job with values for the parent.
        backend: Backend of the job. Default: the active one.
        device: Device of the backend. Default: its first one.
    """
    try:
        if backend is not None:
            set_backend(backend)
        if device is not None:
            set_device(device)
        function = find_work(work)
        if function is None:
            raise ArgumentError(f"{work!r} cannot be imported on this machine")
        return Outcome("done", function(data, report))
    except Exception:
        return Outcome("failed", traceback.format_exc())


def fixed(jobs: Sequence[Job]) -> Source:
    """Return a source of the given jobs, in order.

    Args:
        jobs: The jobs.
    """
    remaining: Iterator[Job] = iter(jobs)
    return lambda: next(remaining, None)
