"""Threads and tasks in which the calls of stages run."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeAlias

from ember_ml.backend import use_backend
from ember_ml.backend.selection import scoped_backend

Done: TypeAlias = Callable[[Any, BaseException | None], None]
"""Function called on the event loop with the result of a call, or with its error."""

POLL = 0.5
"""Seconds after which an idle thread checks whether its event loop was closed."""


class Scope:
    """Context variables and backend that are active where the pipeline starts."""

    def __init__(self) -> None:
        self._context = contextvars.copy_context()
        self._backend = scoped_backend()

    def context(self) -> contextvars.Context:
        """Return a copy of the context, which one thread or task can enter."""
        return self._context.copy()

    def backend(self) -> contextlib.AbstractContextManager[object]:
        """Return the `use_backend` scope, which may have ended where the pipeline started."""
        if self._backend is None:
            return contextlib.nullcontext()
        return use_backend(self._backend)


class Worker:
    """Thread that runs one function after the other, for one event loop.

    It is a daemon: a function that never returns does not keep the process alive.

    Args:
        name: Name of the thread.
        scope: Context of the functions.
    """

    def __init__(self, name: str, scope: Scope) -> None:
        self._loop = asyncio.get_running_loop()
        self._inbox: queue.SimpleQueue[tuple[Callable[[], Any], Done] | None] = queue.SimpleQueue()
        self._scope = scope
        self._stopped = False
        self._running = 0
        self.exited: asyncio.Future[None] = self._loop.create_future()
        """Future that is done when the thread has ended."""
        self.thread = threading.Thread(
            target=scope.context().run, args=(self._work,), name=name, daemon=True
        )
        self.thread.start()

    def start(self, function: Callable[[], Any], done: Done) -> None:
        """Run a function, then call `done` on the event loop."""
        self._running += 1

        def end(result: Any, error: BaseException | None) -> None:
            self._running -= 1
            done(result, error)

        self._inbox.put((function, end))

    def stop(self) -> None:
        """End the thread after the functions that were started."""
        self._stopped = True
        self._inbox.put(None)

    @property
    def abandoned(self) -> bool:
        """Whether the thread was stopped, but a function still runs."""
        return self._stopped and self._running > 0

    def _work(self) -> None:
        with self._scope.backend():
            while self._run_next():
                pass
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._end)

    def _run_next(self) -> bool:
        """Run one function; return whether to go on."""
        try:
            task = self._inbox.get(timeout=POLL)
        except queue.Empty:
            return not self._loop.is_closed()
        if task is None:
            return False
        function, done = task
        result, raised = None, None
        try:
            result = function()
        except BaseException as error:
            raised = error
        try:
            self._loop.call_soon_threadsafe(done, result, raised)
        except RuntimeError:  # the loop is closed
            return False
        finally:
            result = raised = None  # the tracebacks of errors refer to this frame
        return True

    def _end(self) -> None:
        self.thread.join()
        if not self.exited.done():
            self.exited.set_result(None)


class Executor(Protocol):
    """Runs the calls of one stage."""

    def start(self, items: list[Any], done: Done) -> Callable[[], object]:
        """Start a call; return the function that asks it to stop."""

    def stop(self) -> list[asyncio.Future[Any]]:
        """End the idle threads; return the futures of everything that still runs."""


class ThreadExecutor:
    """Runs calls in threads, which are started when they are needed and then kept.

    Args:
        name: Name of the threads.
        function: Called with the items of a call.
        scope: Context of the calls.
    """

    def __init__(self, name: str, function: Callable[[list[Any]], Any], scope: Scope) -> None:
        self._name = name
        self._function = function
        self._scope = scope
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []

    def start(self, items: list[Any], done: Done) -> Callable[[], object]:
        """Start a call in an idle thread; a thread cannot be asked to stop."""
        if not self._idle:
            worker = Worker(f"{self._name}-{len(self._workers)}", self._scope)
            self._workers.append(worker)
            self._idle.append(worker)
        worker = self._idle.pop()

        def end(result: Any, error: BaseException | None) -> None:
            self._idle.append(worker)
            done(result, error)

        worker.start(lambda: self._function(items), end)
        return lambda: None

    def stop(self) -> list[asyncio.Future[Any]]:
        """End the threads after their current calls; return the futures of their ends."""
        for worker in self._workers:
            worker.stop()
        return [worker.exited for worker in self._workers]


class TaskExecutor:
    """Runs calls as tasks of the event loop.

    Args:
        name: Name of the tasks.
        function: Coroutine function, called with the items of a call.
        scope: Context of the calls.
    """

    def __init__(
        self, name: str, function: Callable[[list[Any]], Coroutine[Any, Any, Any]], scope: Scope
    ) -> None:
        self._name = name
        self._function = function
        self._scope = scope
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, items: list[Any], done: Done) -> Callable[[], object]:
        """Start a call as a task; return the function that cancels it."""
        task = self._loop.create_task(
            self._call(items), name=self._name, context=self._scope.context()
        )
        self._tasks.add(task)

        def end(task: asyncio.Task[Any]) -> None:
            self._tasks.discard(task)
            if task.cancelled():
                done(None, asyncio.CancelledError())
            elif (error := task.exception()) is not None:
                done(None, error)
            else:
                done(task.result(), None)

        task.add_done_callback(end)
        return task.cancel

    async def _call(self, items: list[Any]) -> Any:
        with self._scope.backend():
            return await self._function(items)

    def stop(self) -> list[asyncio.Future[Any]]:
        """Return the running tasks."""
        return list(self._tasks)
