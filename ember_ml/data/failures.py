"""Failures of workers, and the error that reports them to the loop."""

from __future__ import annotations

import traceback
from typing import NamedTuple, TypeAlias

from ember_ml.data.conversion import Pytree
from ember_ml.data.errors import WorkerError
from ember_ml.data.reading import End, Task

PATIENCE = 5.0
"""Seconds to wait for a process or thread to finish by itself."""


class Failure(NamedTuple):
    """Failure of a worker: the error, if raised in this process, and its traceback as text."""

    error: BaseException | None
    text: str


Result: TypeAlias = Pytree | End | Failure
"""Batch, end of the stream or failure."""


def format_error(error: BaseException) -> str:
    """Return an error with its traceback as text.

    Args:
        error: Error that was raised.
    """
    return "".join(traceback.format_exception(error))


def worker_error(task: Task, failure: Failure) -> WorkerError:
    """Return the error of a batch that a worker could not read.

    Args:
        task: Batch that was to be read.
        failure: Failure of the worker.
    """
    examples = ""
    if len(task.indices):
        shown = ", ".join(str(index) for index in task.indices[:8])
        examples = f" (examples {shown}{', ...' if len(task.indices) > 8 else ''})"
    return WorkerError(
        f"DataLoader: a worker could not read batch {task.number}{examples}:\n{failure.text}"
    )
