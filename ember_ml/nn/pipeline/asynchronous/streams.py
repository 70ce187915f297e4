"""Results of `map`: a bounded window of items between the source and the consumer."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self

from ember_ml.nn.pipeline.asynchronous.errors import PipelineClosed, PipelineError, raisable
from ember_ml.nn.pipeline.asynchronous.items import Item, Result
from ember_ml.nn.pipeline.asynchronous.progress import Progress
from ember_ml.nn.pipeline.asynchronous.sources import END, Reader, reader_of

if TYPE_CHECKING:
    from ember_ml.nn.pipeline.asynchronous.engine import Engine


class MapState:
    """Items of one `map`: read, in flight, finished, delivered.

    The task that reads the source refers to this object, not to the stream, so that a stream that
    its consumer drops is deleted and ends the reading.

    Args:
        engine: Running pipeline.
        ordered: Whether results come in the order of the source.
        window: Maximum number of items that are read but not delivered.
        timeout: Seconds from reading an item to its deadline; None for no deadline.
        progress: Items that were delivered before, which are not run again.
    """

    def __init__(
        self,
        engine: Engine,
        ordered: bool,
        window: int,
        timeout: float | None,
        progress: Progress,
    ) -> None:
        self.engine = engine
        self.progress = progress
        self.failures: Counter[str] = Counter()
        self.exhausted = False
        self.closed = False
        self._error: BaseException | None = None
        self._ordered = ordered
        self._window = window
        self._timeout = timeout
        self._next = 0  # position in the source
        self._wanted = 0  # position of the next result in order
        self._outstanding = 0
        self._items: dict[int, Item] = {}
        self._finished: dict[int, Result] = {}
        self._consumer: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._reader: Reader | None = None

    @property
    def may_read(self) -> bool:
        """Whether another item may come: the source has more, and the window has or gets room."""
        full = self._outstanding >= self._window
        return not self.exhausted and not (full and self._deliverable() is None)

    def start(self, source: object) -> None:
        """Start reading.

        Args:
            source: Iterable, asynchronous iterable or reader.
        """
        self._reader = reader_of(source, self.engine)
        self.engine.sources.add(self)
        self._task = self.engine.loop.create_task(self._read(self._reader))

    async def _read(self, reader: Reader) -> None:
        error: BaseException | None = None
        try:
            while await self._read_one(reader):
                pass
        except asyncio.CancelledError:  # by `stop_reading`, or with all tasks of the loop
            error = PipelineClosed(f"the pipeline was closed before item {self._next} was read")
        except PipelineError as refused:
            error = refused
        except Exception as raised:
            error = raisable(raised)
            error.add_note(f"in the source of the pipeline, item {self._next}")
        except BaseException as raised:
            raised.add_note(f"in the source of the pipeline, item {self._next}")
            error = raised
            raise
        finally:
            reader.close()
            self._end(error)

    async def _read_one(self, reader: Reader) -> bool:
        """Read and start one item; return False at the end of the source."""
        while self._outstanding >= self._window:
            self._room = self.engine.loop.create_future()
            self.engine.check_idle()
            await self._room
        value = await reader.read()
        if value is END:
            return False
        index = self._next
        if index in self.progress:
            self._next += 1
            self._skip_delivered()
            return True
        self._outstanding += 1
        try:
            await self.engine.admission.acquire()
        except BaseException:
            self.engine.rejected += 1
            self._outstanding -= 1
            raise
        self._next += 1
        deadline = None if self._timeout is None else self.engine.loop.time() + self._timeout
        item = self.engine.accept(value, deadline, self._finish, index=index, source=self)
        if item.outcome is None:
            self._items[index] = item
        return True

    def _skip_delivered(self) -> None:
        while self._wanted < self._next and self._wanted in self.progress:
            self._wanted += 1

    def _finish(self, item: Item, result: Result) -> None:
        self._items.pop(item.index, None)
        if not self.closed:
            self._finished[item.index] = result
            self._wake()

    def _end(self, error: BaseException | None) -> None:
        self.exhausted = True
        self._error = error
        self._wake()
        self.engine.check_idle()

    def _wake(self) -> None:
        if self._consumer is not None and not self._consumer.done():
            self._consumer.set_result(None)

    def _deliverable(self) -> int | None:
        """Return the position of a result that can be delivered."""
        if not self._ordered:
            return next(iter(self._finished), None)
        return self._wanted if self._wanted in self._finished else None

    async def take(self) -> Result | None:
        """Return the next result; None after the last one."""
        while (index := self._deliverable()) is None:
            if self.closed:
                return None
            if self.exhausted and not self._items and not self._finished:
                return self._last()
            if self._consumer is not None:
                raise PipelineError("the results of a map are read by two tasks at once")
            self._consumer = self.engine.loop.create_future()
            try:
                await self._consumer
            finally:
                self._consumer = None
        result = self._finished.pop(index)
        if result.kind != "error":
            self.progress.add(index)
        self._wanted = max(self._wanted, index + 1) if self._ordered else self._wanted
        self._skip_delivered()
        self._outstanding -= 1
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        return result

    def _last(self) -> Result | None:
        error, self._error = self._error, None
        return None if error is None else Result("error", error=error)

    def stop_reading(self) -> None:
        """Read no more items; those that were accepted are delivered."""
        if self._task is not None and not self.exhausted:
            self._task.cancel()

    def close(self) -> None:
        """Stop reading, cancel the items in flight, and drop the results."""
        if self.closed:
            return
        self.closed = True
        self.stop_reading()
        self.engine.sources.discard(self)
        for item in list(self._items.values()):
            self.engine.cancel(item)
        self._finished.clear()
        self._wake()


class MapStream(AsyncIterator[Any]):
    """Results of `AsyncPipeline.map`, read with `async for`.

    Leaving the loop early cancels the items in flight; `aclose` does so explicitly.

    Args:
        state: Items of the map.
        source: Iterable, asynchronous iterable or reader.
    """

    def __init__(self, state: MapState, source: object) -> None:
        self._state = state
        self._source: object | None = source

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        state = self._state
        if self._source is not None:
            source, self._source = self._source, None
            state.start(source)
        while True:
            result = await state.take()
            if result is None:
                state.close()
                raise StopAsyncIteration
            if result.kind == "value":
                return result.value
            if result.kind == "error":
                state.close()
                assert result.error is not None
                raise result.error

    async def aclose(self) -> None:
        """Cancel the items in flight and stop reading the source."""
        self._source = None
        self._state.close()

    def state_dict(self) -> dict[str, Any]:
        """Return which items were delivered, for `AsyncPipeline.load_state_dict`."""
        return self._state.progress.to_dict()

    def __del__(self) -> None:
        state = self._state
        if not state.closed and self._source is None:
            # A garbage collection may run in any thread, and after the loop was closed.
            with contextlib.suppress(RuntimeError):
                state.engine.loop.call_soon_threadsafe(state.close)
