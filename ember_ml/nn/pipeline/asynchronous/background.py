"""Synchronous runs: an event loop of its own in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ember_ml.nn.pipeline.asynchronous.handover import evaluate
from ember_ml.nn.pipeline.asynchronous.sources import END, completer
from ember_ml.nn.pipeline.asynchronous.workers import POLL

Work: TypeAlias = Callable[[object], Coroutine[Any, Any, list[Any]]]
Reply: TypeAlias = Callable[[Any, BaseException | None], None]


class CallerReader:
    """Reader of a source that the thread which called `run` reads.

    A generator thus runs where its caller expects it, and its arrays are evaluated there.

    Args:
        requests: Queue of the replies that the caller owes.
    """

    def __init__(self, requests: queue.SimpleQueue[Reply | None]) -> None:
        self._requests = requests

    async def read(self) -> Any:
        """Return the next value, or END."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        complete = completer(future)

        def reply(value: Any, error: BaseException | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(complete, value, error)

        self._requests.put(reply)
        return await future

    def close(self) -> None:
        """Do nothing: the source belongs to the caller."""


def _current_task() -> asyncio.Task[Any] | None:
    """Return the task that runs in this thread; None outside an event loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


class Background:
    """Coroutine that runs on an event loop in a thread, while the caller reads its source.

    Args:
        work: Coroutine function from a source to its results.
        data: Source.
    """

    def __init__(self, work: Work, data: Iterable[Any] | AsyncIterable[Any]) -> None:
        self._work = work
        self._data = data
        self._caller = _current_task()
        self._requests: queue.SimpleQueue[Reply | None] = queue.SimpleQueue()
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._result: list[Any] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._run,),
            name="ember-ml pipeline loop",
            daemon=True,
        )

    def run(self) -> list[Any]:
        """Return the results; an interrupt cancels the work first."""
        if isinstance(self._data, Sequence):
            evaluate(*self._data)
        try:
            self._thread.start()
            self._serve()
            self._thread.join()
        except BaseException:  # Ctrl-C
            self._cancel()
            self._thread.join()
            raise
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # which refers to this frame
        return self._result

    def _serve(self) -> None:
        """Read the source when the pipeline asks for it, until it has ended."""
        iterator: Iterator[Any] | None = None
        while (reply := self._next_request()) is not None:
            try:
                iterator = iter(self._data) if iterator is None else iterator  # type: ignore[arg-type]
                value = next(iterator, END)
                evaluate(value)
            except Exception as error:
                reply(None, error)
            else:
                reply(value, None)

    def _next_request(self) -> Reply | None:
        """Return the next request; raise a CancelledError if the calling task was canceled.

        On Ctrl-C an event loop cancels its task, which cannot notice it while it waits here.
        """
        if self._caller is None:
            return self._requests.get()
        while not self._caller.cancelling():
            with contextlib.suppress(queue.Empty):
                return self._requests.get(timeout=POLL)
        raise asyncio.CancelledError

    def _cancel(self) -> None:
        self._started.wait()
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._task.cancel)

    def _run(self) -> None:
        try:
            self._result = asyncio.run(self._main())
        except BaseException as error:
            self._error = error
        finally:
            self._started.set()
            self._requests.put(None)

    async def _main(self) -> list[Any]:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._started.set()
        inline = isinstance(self._data, (AsyncIterable, Sequence))
        return await self._work(self._data if inline else CallerReader(self._requests))
