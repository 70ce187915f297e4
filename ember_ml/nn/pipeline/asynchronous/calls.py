"""Calls of stages: one call for some items, and the halves of a failed batch."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from ember_ml.nn.module import Module, inference_mode
from ember_ml.nn.pipeline.asynchronous.errors import StageError, raisable
from ember_ml.nn.pipeline.asynchronous.handover import evaluate
from ember_ml.nn.pipeline.asynchronous.items import Item
from ember_ml.nn.pipeline.asynchronous.stage import Stage


class Ended(NamedTuple):
    """End of an item's way through a stage: a value, or an error."""

    item: Item
    value: Any
    error: Exception | None


class _CollateError(Exception):
    """Error before the stage ran, which leaves every item as it was."""


def _attempts(stage: Stage, items: list[Item]) -> Generator[list[Item], Any, list[Ended]]:
    """Yield the items of each call, receive its results or its error, return the ends.

    A batch that fails is divided if the stage is pure, or if only the collation failed. Items that
    have an outcome by then, such as canceled ones, are left out of every call.
    """
    ends: list[Ended] = []
    pending = [items]
    while pending:
        part = [item for item in pending.pop() if item.outcome is None]
        if not part:
            continue
        # An error is sent as a value: its traceback would refer to this frame, which refers to it.
        results: Sequence[Any] | Exception = yield part
        if not isinstance(results, Exception):
            pairs = zip(part, results, strict=True)
            ends += [Ended(item, value, None) for item, value in pairs]
        elif len(part) > 1 and (stage.pure or isinstance(results, _CollateError)):
            half = len(part) // 2
            pending += [part[half:], part[:half]]
        else:
            ends += _failed(stage, part, results)
    return ends


def _failed(stage: Stage, items: list[Item], error: Exception) -> list[Ended]:
    cause = error.__cause__ if isinstance(error, _CollateError) else error
    assert isinstance(cause, Exception)
    cause = raisable(cause)
    cause.add_note(_where(stage, items))
    return [Ended(item, None, cause) for item in items]


def _where(stage: Stage, items: list[Item]) -> str:
    numbers = ", ".join(str(item.index) for item in items)
    return f"in stage {stage.name!r}, item{'s' * (len(items) > 1)} {numbers}"


def _collated(stage: Stage, part: list[Item]) -> Any:
    values = [item.value for item in part]
    if stage.batch is None:
        return values[0]
    try:
        return stage.collate(values)
    except Exception as error:
        raise _CollateError from error


def call(stage: Stage, items: list[Item]) -> list[Ended]:
    """Run a stage on some items in this thread; return the end of each.

    Args:
        stage: Stage whose function is not a coroutine function.
        items: Items of the call.
    """
    attempts = _attempts(stage, items)
    results: Any = None
    module = stage.function if isinstance(stage.function, Module) else None
    with inference_mode(module.modules()) if module is not None else contextlib.nullcontext():
        while True:
            try:
                part = attempts.send(results)
            except StopIteration as end:
                return end.value
            finally:
                results = None  # an error refers to this frame
            try:
                results = _run(stage, part)
            except Exception as error:
                results = error


def _run(stage: Stage, part: list[Item]) -> Any:
    result = stage.function(_collated(stage, part))
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise StageError(
            f"stage {stage.name!r} returned an awaitable; declare its function with async def"
        )
    results = stage.split(result, len(part))
    evaluate(*results)
    return results


async def call_async(stage: Stage, items: list[Item]) -> list[Ended]:
    """Run a stage on some items on the event loop; return the end of each.

    Args:
        stage: Stage whose function is a coroutine function.
        items: Items of the call.
    """
    attempts = _attempts(stage, items)
    results: Any = None
    while True:
        try:
            part = attempts.send(results)
        except StopIteration as end:
            return end.value
        finally:
            results = None  # an error refers to this frame
        try:
            result = await stage.function(_collated(stage, part))
            results = stage.split(result, len(part))
            evaluate(*results)
        except Exception as error:
            results = error
