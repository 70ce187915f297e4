"""One stage of a running pipeline: its queue, its running calls, its measurements."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ember_ml.nn.pipeline.asynchronous.calls import Ended, call, call_async
from ember_ml.nn.pipeline.asynchronous.errors import StageError, StageStuck, StageTimeout
from ember_ml.nn.pipeline.asynchronous.items import Item
from ember_ml.nn.pipeline.asynchronous.queues import Batches, Queue, SingleItems
from ember_ml.nn.pipeline.asynchronous.stage import Stage
from ember_ml.nn.pipeline.asynchronous.stats import StageCounts, StageStats
from ember_ml.nn.pipeline.asynchronous.workers import Executor, TaskExecutor, ThreadExecutor

if TYPE_CHECKING:
    from ember_ml.nn.pipeline.asynchronous.engine import Engine


class Job:
    """Running call of a stage.

    Args:
        items: Items of the call.
        started: Time of the event loop.
    """

    def __init__(self, items: list[Item], started: float) -> None:
        self.items = items
        self.started = started
        self.waiting = len(items)
        self.timer: asyncio.TimerHandle | None = None
        self.cancel: Callable[[], object] | None = None
        self.on_abandon: Callable[[], None] | None = None

    @property
    def abandoned(self) -> bool:
        """Whether nobody waits for the result."""
        return not self.waiting

    def discard(self, item: Item) -> None:
        """Note that an item has an outcome; ask the call to stop if it was the last one."""
        self.waiting -= 1
        if self.abandoned:
            if self.cancel is not None:
                self.cancel()
            if self.on_abandon is not None:
                self.on_abandon()


class Runner:
    """Queue and calls of one stage of a running pipeline.

    Args:
        engine: The running pipeline.
        stage: What runs, and how.
    """

    def __init__(self, engine: Engine, stage: Stage) -> None:
        self.engine = engine
        self.stage = stage
        self.counts = StageCounts()
        self.queue: Queue = SingleItems()
        if stage.batch is not None:
            self.queue = Batches(stage.batch, engine.guarded(self.pump))
        self._loop = engine.loop
        self._jobs: set[Job] = set()
        self._stuck = False
        self._stuck_timer: asyncio.TimerHandle | None = None
        name = f"ember-ml pipeline {stage.name}"
        self.executor: Executor
        if stage.is_coroutine:
            self.executor = TaskExecutor(name, functools.partial(call_async, stage), engine.scope)
        else:
            self.executor = ThreadExecutor(name, functools.partial(call, stage), engine.scope)

    def put(self, item: Item) -> None:
        """Queue an item; an error of the key function fails this item only."""
        if self._stuck:
            self._fail_stuck(item)
            return
        item.entered = self._loop.time()
        try:
            self.queue.put(item)
        except Exception as error:
            error.add_note(f"in the batch key of stage {self.stage.name!r}, item {item.index}")
            self.engine.fail(item, self, error)
            return
        self.pump()

    def pump(self) -> None:
        """Start calls while there are free slots and due items."""
        while len(self._jobs) < self.stage.concurrency and (items := self.queue.take()):
            if items := self._live(items):
                self._start(items)
        self._watch()

    def flush(self) -> None:
        """Start incomplete batches too."""
        self.queue.flush()
        self.pump()

    def _live(self, items: list[Item]) -> list[Item]:
        """Return the items to run: no compute after the deadline."""
        now = self._loop.time()
        for item in items:
            item.holder = None
            if item.deadline is not None and item.deadline <= now:
                self.engine.expire(item)
        return [item for item in items if item.outcome is None]

    def _start(self, items: list[Item]) -> None:
        now = self._loop.time()
        job = Job(items, now)
        self._jobs.add(job)
        for item in items:
            item.holder = job
            self.counts.wait.add(now - item.entered)
        self.counts.batch_sizes[len(items)] += 1
        self.engine.notify("on_stage_start", self.stage.name, len(items))
        if self.stage.timeout is not None:
            expire = self.engine.guarded(functools.partial(self._time_out, job))
            job.timer = self._loop.call_later(self.stage.timeout, expire)
        job.on_abandon = self._watch
        job.cancel = self.executor.start(
            items, self.engine.guarded(functools.partial(self._finish, job))
        )

    def _finish(self, job: Job, ends: list[Ended] | None, error: BaseException | None) -> None:
        """Free the slot of a call, and pass its items on."""
        self._jobs.discard(job)
        self._recover()
        if job.timer is not None:
            job.timer.cancel()
        seconds = self._loop.time() - job.started
        self.counts.run.add(seconds)
        self.engine.notify("on_stage_end", self.stage.name, len(job.items), seconds)
        job.cancel = job.on_abandon = None
        if error is not None:
            self._break(job, error)
        for end in ends or ():
            if end.item.outcome is None:
                end.item.holder = None
                if end.error is None:
                    self.engine.advance(end.item, end.value)
                else:
                    self.engine.fail(end.item, self, end.error)
        self.pump()
        self.engine.check_idle()

    def _break(self, job: Job, error: BaseException) -> None:
        """Handle a call that ended without results."""
        if not isinstance(error, asyncio.CancelledError):  # SystemExit, KeyboardInterrupt
            self.engine.die(error, f"stage {self.stage.name!r}")
            return
        for item in job.items:
            if item.outcome is None:
                text = f"the task of stage {self.stage.name!r} was canceled from outside"
                self.engine.fail(item, self, StageError(f"{text}, item {item.index}"))

    def _time_out(self, job: Job) -> None:
        for item in job.items:
            if item.outcome is None:
                text = f"stage {self.stage.name!r} took longer than {self.stage.timeout} s"
                self.engine.fail(item, self, StageTimeout(f"{text} for item {item.index}"))

    def _watch(self) -> None:
        """Start the timer that fails waiting items if every slot stays abandoned."""
        timeout = self.stage.timeout
        if timeout is None or self._stuck_timer is not None or not self._all_abandoned():
            return
        self._stuck_timer = self._loop.call_later(timeout, self.engine.guarded(self._give_up))

    def _all_abandoned(self) -> bool:
        full = len(self._jobs) >= self.stage.concurrency
        return full and all(job.abandoned for job in self._jobs)

    def _give_up(self) -> None:
        self._stuck_timer = None
        if self._all_abandoned():
            self._stuck = True
            for item in self.queue.items():
                self._fail_stuck(item)

    def _recover(self) -> None:
        """Accept items again: a slot is free."""
        self._stuck = False
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
            self._stuck_timer = None

    def _fail_stuck(self, item: Item) -> None:
        slots = self.stage.concurrency
        text = f"stage {self.stage.name!r}: all {slots} of its calls hang after their timeout"
        self.engine.fail(item, self, StageStuck(f"{text}; item {item.index} cannot run"))

    def stop(self) -> list[asyncio.Future[object]]:
        """End idle threads and timers; return the futures of the calls that still run."""
        self._recover()
        return self.executor.stop()

    @property
    def abandoned(self) -> int:
        """Number of running calls whose result is discarded."""
        return sum(job.abandoned for job in self._jobs)

    def stats(self) -> StageStats:
        """Return the measurements so far."""
        counts = self.counts
        return StageStats(
            self.stage.name,
            len(self.queue),
            len(self._jobs),
            self.abandoned,
            counts.failed,
            counts.wait.summary(),
            counts.run.summary(),
            dict(counts.batch_sizes),
        )
