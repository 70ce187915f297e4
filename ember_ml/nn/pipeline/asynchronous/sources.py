"""Reading of sources: sequences, iterables in a thread, asynchronous iterables."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.nn.pipeline.asynchronous.handover import evaluate
from ember_ml.nn.pipeline.asynchronous.workers import Worker

if TYPE_CHECKING:
    from ember_ml.nn.pipeline.asynchronous.engine import Engine

END = object()
"""What a reader returns after the last value."""


class Reader(Protocol):
    """Reads one value after the other."""

    async def read(self) -> Any:
        """Return the next value, or END."""

    def close(self) -> None:
        """Release the resources of the reader."""


class InlineReader:
    """Reads an iterable on the event loop.

    Args:
        values: Iterable that does not block.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = iter(values)

    async def read(self) -> Any:
        """Return the next value, or END."""
        value = next(self._values, END)
        evaluate(value)
        return value

    def close(self) -> None:
        """Do nothing."""


class AsyncReader:
    """Reads an asynchronous iterable.

    Args:
        values: Asynchronous iterable.
    """

    def __init__(self, values: AsyncIterable[Any]) -> None:
        self._values: AsyncIterator[Any] = aiter(values)

    async def read(self) -> Any:
        """Return the next value, or END."""
        value = await anext(self._values, END)
        evaluate(value)
        return value

    def close(self) -> None:
        """Do nothing: the source belongs to the caller."""


class ThreadReader:
    """Reads an iterable in a thread, so that a source that blocks does not block the loop.

    Args:
        values: Iterable.
        worker: Thread of the reader, which ends with it.
    """

    def __init__(self, values: Iterable[Any], worker: Worker) -> None:
        self._loop = asyncio.get_running_loop()
        self._values = values
        self._iterator: Iterator[Any] | None = None
        self._worker = worker

    async def read(self) -> Any:
        """Return the next value, or END."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._worker.start(self._next, completer(future))
        return await future

    def _next(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(self._values)
        value = next(self._iterator, END)
        evaluate(value)
        return value

    def close(self) -> None:
        """End the thread."""
        self._worker.stop()


def completer(future: asyncio.Future[Any]) -> Callable[[Any, BaseException | None], None]:
    """Return the function that completes a future with a value or an error.

    Args:
        future: Future that may be canceled before.
    """

    def complete(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration):  # which a future refuses
            future.set_exception(RuntimeError("the source raised StopIteration"))
        else:
            future.set_exception(error)

    return complete


def reader_of(values: object, engine: Engine) -> Reader:
    """Return the reader of a source.

    Args:
        values: Reader, asynchronous iterable, sequence or other iterable.
        engine: Running pipeline, which waits for the reader's thread when it is closed.
    """
    if isinstance(values, AsyncIterable):
        return AsyncReader(values)
    if isinstance(values, (Sequence, dict, set, frozenset)):
        return InlineReader(values)
    if isinstance(values, Iterable):
        worker = Worker("ember-ml pipeline source", engine.scope)
        engine.workers = [each for each in engine.workers if not each.exited.done()]
        engine.workers.append(worker)
        return ThreadReader(values, worker)
    with contextlib.suppress(AttributeError):
        if callable(values.read) and callable(values.close):  # type: ignore[attr-defined]
            return values  # type: ignore[return-value]
    raise ArgumentTypeError(
        f"the source of a pipeline must be an iterable or an asynchronous iterable, "
        f"not {values!r:.60}"
    )
