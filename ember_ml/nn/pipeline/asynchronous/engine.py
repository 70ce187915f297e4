"""A running pipeline: accepts items, moves them through the stages, records their outcomes.

All state changes on the event loop; threads only run stages and report their results to it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVarTuple

from ember_ml.nn.pipeline.asynchronous.admission import Admission
from ember_ml.nn.pipeline.asynchronous.callbacks import PipelineCallback
from ember_ml.nn.pipeline.asynchronous.errors import (
    DeadlineExceeded,
    ItemSkipped,
    PipelineClosed,
    TooManyFailures,
)
from ember_ml.nn.pipeline.asynchronous.items import NONE, Failure, Item, Outcome, Result
from ember_ml.nn.pipeline.asynchronous.runner import Runner
from ember_ml.nn.pipeline.asynchronous.stage import Stage
from ember_ml.nn.pipeline.asynchronous.stats import Stats, Timing
from ember_ml.nn.pipeline.asynchronous.streams import MapState
from ember_ml.nn.pipeline.asynchronous.workers import Scope, Worker

Args = TypeVarTuple("Args")


class Engine:
    """A running pipeline, bound to the running event loop.

    Args:
        stages: Stages in order.
        buffer: Maximum number of items in flight.
        callbacks: Observers.
    """

    def __init__(
        self, stages: Sequence[Stage], buffer: int, callbacks: Sequence[PipelineCallback] = ()
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.scope = Scope()
        self.admission = Admission(buffer)
        self.rejected = 0
        self.sources: set[MapState] = set()
        self.workers: list[Worker] = []
        """Threads that read the sources of maps."""
        self._callbacks = tuple(callbacks)
        self._outcomes: Counter[Outcome] = Counter()
        self._accepted = 0
        self._submitted = 0
        self._items: dict[Item, None] = {}
        self._latency = Timing()
        self._drained: asyncio.Event = asyncio.Event()
        self._drained.set()
        self._closer: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._checking = False
        self._runners = [Runner(self, stage) for stage in stages]
        self._batching = [runner for runner in self._runners if runner.stage.batch is not None]

    @property
    def closing(self) -> bool:
        """Whether no more items are accepted."""
        return self.admission.closed

    @property
    def in_flight(self) -> int:
        """Number of accepted items without an outcome."""
        return len(self._items)

    def accept(
        self,
        value: Any,
        deadline: float | None,
        on_done: Callable[[Item, Result], None],
        *,
        index: int | None = None,
        source: MapState | None = None,
    ) -> Item:
        """Accept an item for which a place was acquired, and start it.

        Args:
            value: Input of the first stage.
            deadline: Time of the event loop after which no stage runs.
            on_done: Called once with the item and its result.
            index: Position in the source. Default: the number of the accepted item.
            source: State of the `map` that read the item.
        """
        item = Item(self._accepted if index is None else index, value, deadline, source, on_done)
        item.accepted = self.loop.time()
        self._accepted += 1
        self._items[item] = None
        self._submitted += source is None
        self._drained.clear()
        if deadline is not None:
            item.timer = self.loop.call_at(deadline, self.guarded(self.expire), item)
        self.notify("on_accept", item.index)
        self.guarded(self._runners[0].put)(item)
        self.check_idle()
        return item

    def advance(self, item: Item, value: Any) -> None:
        """Pass an item to the next stage; complete it after the last one.

        Args:
            item: Item that a stage has processed.
            value: Result of the stage.
        """
        item.value = value
        item.stage += 1
        if item.stage < len(self._runners):
            self._runners[item.stage].put(item)
        else:
            self.finish(item, "completed", Result("value", value))

    def fail(
        self, item: Item, runner: Runner, error: BaseException, outcome: Outcome = "failed"
    ) -> None:
        """Finish an item that failed in a stage, as `on_error` of the stage says.

        Args:
            item: The item.
            runner: The stage.
            error: What went wrong.
            outcome: "failed" or "expired".
        """
        stage = runner.stage
        runner.counts.failed += 1
        if stage.on_error != "raise" and self._too_many(item, runner):
            text = f"stage {stage.name!r}: more than {stage.max_failures} items failed"
            limit = TooManyFailures(f"{text}, the last one is item {item.index}")
            limit.__cause__ = error
            self.finish(item, outcome, Result("error", error=limit))
        elif stage.on_error == "raise" or (outcome == "expired" and item.source is None):
            self.finish(item, outcome, Result("error", error=error))
        elif stage.on_error == "yield":
            failure = Failure(stage.name, item.index, error)
            self.finish(item, outcome, Result("value", failure))
        else:
            skipped = ItemSkipped(f"item {item.index} failed in stage {stage.name!r}: {error!r}")
            skipped.__cause__ = error
            result = Result("none", error=skipped)
            self.finish(item, "skipped" if outcome == "failed" else outcome, result)

    def _too_many(self, item: Item, runner: Runner) -> bool:
        limit = runner.stage.max_failures
        if item.source is None or limit is None:
            return False
        item.source.failures[runner.stage.name] += 1
        return item.source.failures[runner.stage.name] > limit

    def expire(self, item: Item) -> None:
        """Finish an item whose deadline has passed."""
        if item.outcome is None:
            runner = self._runners[item.stage]
            text = f"the deadline of item {item.index} passed in stage {runner.stage.name!r}"
            self.fail(item, runner, DeadlineExceeded(text), "expired")

    def cancel(self, item: Item) -> None:
        """Finish an item that nobody waits for."""
        self.finish(item, "cancelled", NONE)

    def finish(self, item: Item, outcome: Outcome, result: Result) -> None:
        """Record the outcome of an item, and remove it from its queue; nothing if it has one.

        Args:
            item: The item.
            outcome: Its outcome.
            result: What its receiver gets.
        """
        if item.outcome is not None:
            return
        item.outcome = outcome
        self._outcomes[outcome] += 1
        del self._items[item]
        self._submitted -= item.source is None
        if item.timer is not None:
            item.timer.cancel()
        holder, item.holder, item.value = item.holder, None, None
        if holder is not None:
            holder.discard(item)
        seconds = self.loop.time() - item.accepted
        if outcome == "completed":
            self._latency.add(seconds)
        self.admission.release()
        on_done, item.on_done = item.on_done, _ignore  # which refers to the error
        on_done(item, result)
        self.notify("on_outcome", item.index, outcome, seconds)
        if not self._items:
            self._drained.set()
        self.check_idle()

    def check_idle(self) -> None:
        """Start incomplete batches if no other item can join them.

        That is the case if all items in flight wait in incomplete batches, and no new ones can
        come: the pipeline is full or closing, or all items are of maps that cannot read on.
        """
        if self._batching and not self._checking and self._all_wait():
            self._checking = True
            self.loop.call_soon(self.guarded(self._flush_if_idle))

    def _flush_if_idle(self) -> None:
        self._checking = False
        blocked = not self._submitted and not any(source.may_read for source in self.sources)
        if self._all_wait() and (self.closing or self.admission.full or blocked):
            for runner in self._batching:
                runner.flush()

    def _all_wait(self) -> bool:
        """Return whether all items in flight wait in front of stages with batches."""
        waiting = sum(len(runner.queue) for runner in self._batching)
        return 0 < len(self._items) == waiting

    def guarded(self, function: Callable[[*Args], None]) -> Callable[[*Args], None]:
        """Return the function; if it raises, all items fail instead of waiting forever.

        Args:
            function: Callback of the event loop.
        """

        def call(*args: *Args) -> None:
            try:
                function(*args)
            except Exception as error:
                self.die(error, "the pipeline")

        return call

    def die(self, error: BaseException, where: str) -> None:
        """Fail all items after an error that no item is responsible for.

        Args:
            error: The error.
            where: Part of the pipeline that raised it.
        """
        self._error = error
        self._refuse()
        self._fail_rest(f"{where} failed with {error!r}", error)

    def notify(self, method: str, *args: object) -> None:
        """Call a method of the callbacks; their errors go to the loop's exception handler."""
        for callback in self._callbacks:
            try:
                getattr(callback, method)(*args)
            except Exception as error:
                message = f"{type(callback).__name__}.{method} of an AsyncPipeline failed"
                self.loop.call_exception_handler({"message": message, "exception": error})

    def _refuse(self) -> None:
        """Accept no more items."""
        self.admission.close()
        for source in list(self.sources):
            source.stop_reading()

    def _fail_rest(self, reason: str, cause: BaseException | None = None) -> None:
        for item in list(self._items):
            error = PipelineClosed(f"item {item.index} was not finished: {reason}")
            error.__cause__ = cause
            self.finish(item, "failed", Result("error", error=error))

    async def aclose(self, drain: bool, timeout: float) -> None:
        """Refuse new items, finish or fail the others, end the threads.

        Args:
            drain: Whether to finish the accepted items.
            timeout: Seconds after which unfinished items fail and running calls are abandoned.
        """
        self._refuse()
        if drain:
            self.check_idle()
        else:
            self._fail_rest("the pipeline was closed without draining")
        if self._closer is None:
            self._closer = self.loop.create_task(self._close(timeout))
        await asyncio.shield(self._closer)

    async def _close(self, timeout: float) -> None:
        deadline = self.loop.time() + timeout
        try:
            await self._wait([asyncio.ensure_future(self._drained.wait())], deadline)
        finally:
            self._fail_rest(f"the pipeline was closed, and did not drain within {timeout} s")
            running: list[asyncio.Future[Any]] = []
            for runner in self._runners:
                running += runner.stop()
            for worker in self.workers:
                worker.stop()
                running.append(worker.exited)
        await self._wait(running, deadline)

    async def _wait(self, futures: list[asyncio.Future[Any]], deadline: float) -> None:
        if futures:
            await asyncio.wait(futures, timeout=max(0.0, deadline - self.loop.time()))

    def lose_loop(self) -> None:
        """Count the items as canceled after the event loop was closed during a run."""
        self.admission.closed = True
        for item in list(self._items):
            with contextlib.suppress(RuntimeError):  # callbacks cannot be scheduled any more
                self.cancel(item)

    def stats(self) -> Stats:
        """Return the counts and measurements so far."""
        if self.loop.is_closed() and self._items:
            self.lose_loop()
        stages = tuple(runner.stats() for runner in self._runners)
        abandoned = sum(stage.abandoned for stage in stages)
        abandoned += sum(worker.abandoned for worker in self.workers)
        return Stats(
            accepted=self._accepted,
            **{name: self._outcomes[name] for name in OUTCOMES},
            in_flight=self.in_flight,
            rejected=self.rejected,
            abandoned=abandoned,
            healthy=not abandoned and self._error is None,
            latency=self._latency.summary(),
            stages=stages,
        )


def _ignore(item: Item, result: Result) -> None:
    """Do nothing."""


OUTCOMES: tuple[Outcome, ...] = ("completed", "failed", "cancelled", "expired", "skipped")
