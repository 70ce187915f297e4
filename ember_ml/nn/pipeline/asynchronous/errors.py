"""Errors of asynchronous pipelines."""

from __future__ import annotations

from ember_ml._core.errors import EmberError


class PipelineError(EmberError, RuntimeError):
    """Base class of the errors of asynchronous pipelines."""


class Overloaded(PipelineError):  # noqa: N818  (the condition is the name)
    """Item that was rejected because the buffer is full: HTTP status 503."""


class PipelineClosed(PipelineError):  # noqa: N818
    """Item that was not accepted, or not finished, because the pipeline was closed."""


class DeadlineExceeded(PipelineError, TimeoutError):  # noqa: N818
    """Item whose deadline passed before it was finished."""


class StageTimeout(PipelineError, TimeoutError):  # noqa: N818
    """Call of a stage that took longer than the timeout of the stage."""


class StageStuck(PipelineError, TimeoutError):  # noqa: N818
    """Item for a stage whose threads all hang in calls that timed out."""


class StageError(PipelineError):
    """Stage with an invalid result, or whose task was canceled from outside."""


class ItemSkipped(PipelineError):  # noqa: N818
    """Submitted item that failed in a stage with `on_error="skip"`."""


class TooManyFailures(PipelineError):  # noqa: N818
    """More failed items in one `map` than `max_failures` of a stage."""


def raisable(error: Exception) -> Exception:
    """Return an error that a coroutine or an asynchronous iterator can raise.

    `StopIteration` and `StopAsyncIteration` would end an iteration as if there were no more items.

    Args:
        error: What a stage or a source raised.
    """
    if not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    replacement = StageError(f"{type(error).__name__} was raised, which is not an error")
    replacement.__cause__ = error
    return replacement
