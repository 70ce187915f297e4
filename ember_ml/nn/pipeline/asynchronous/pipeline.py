"""Asynchronous pipelines."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.base import Config
from ember_ml.configs.fields import ComponentLike, Size, Unconfigured
from ember_ml.configs.stages import StagesField, check_name, default_name, unique_name
from ember_ml.nn.module import Module
from ember_ml.nn.pipeline.asynchronous.async_stage import AsyncStage, config_of, options_of
from ember_ml.nn.pipeline.asynchronous.background import Background
from ember_ml.nn.pipeline.asynchronous.batch import Batch
from ember_ml.nn.pipeline.asynchronous.callbacks import PipelineCallback
from ember_ml.nn.pipeline.asynchronous.engine import Engine
from ember_ml.nn.pipeline.asynchronous.errors import DeadlineExceeded, Overloaded, PipelineClosed
from ember_ml.nn.pipeline.asynchronous.handover import evaluate, evaluate_module
from ember_ml.nn.pipeline.asynchronous.items import Item, Result
from ember_ml.nn.pipeline.asynchronous.progress import Progress
from ember_ml.nn.pipeline.asynchronous.stage import OnError, Stage
from ember_ml.nn.pipeline.asynchronous.stats import Stats
from ember_ml.nn.pipeline.asynchronous.streams import MapState, MapStream
from ember_ml.registry import build, get, register


@register("pipelines/async")
class AsyncPipeline:
    """Stages that process many items at once, with bounded memory.

    A stage is a function (which runs in threads), a coroutine function (which runs on the event
    loop) or a module, such as a model or a pipeline (which runs in one thread, in inference mode).
    Stages use the backend and the context variables of the place where the pipeline was started.

    Each accepted item has exactly one outcome: it is completed, failed, cancelled, expired (its
    deadline passed) or skipped. `stats` counts them.

    Args:
        stages: First stages: modules, their registry names or configs, or `AsyncStage`s with the
            options of `add_stage`; as a list or by name. Default: none.
        buffer: Maximum number of accepted items without an outcome, and maximum number of items
            that one `map` has read but not delivered.
        ordered: Whether `map` and `run` return results in the order of the source. Otherwise in the
            order of completion.
        overload: What `submit` does if the buffer is full: "wait", or "reject" with `Overloaded`.
            `map` always waits. Prefer "reject" if items have deadlines: under steady overload, an
            item that waited has little time left, and may expire before it is finished.
        callbacks: Observers of the items and stages.

    Example:
        >>> pipe = AsyncPipeline(buffer=8)
        >>> _ = pipe.add_stage(lambda text: float(text), name="parse", concurrency=2)
        >>> _ = pipe.add_stage(lambda xs: [x * x for x in xs], name="square", batch=Batch(4))
        >>> pipe.run(["1", "2", "3"])
        [1.0, 4.0, 9.0]
        >>> pipe.stats().completed
        3
    """

    def __init__(
        self,
        stages: StagesField = (),
        *,
        buffer: Size = 64,
        ordered: bool = True,
        overload: Literal["wait", "reject"] = "wait",
        callbacks: Unconfigured[Sequence[PipelineCallback]] = (),
    ) -> None:
        self.buffer = buffer
        self.ordered = ordered
        self.overload = overload
        self.callbacks = tuple(callbacks)
        self._stages: dict[str, Stage] = {}
        self._engine: Engine | None = None
        self._last: Engine | None = None
        self._progress = Progress()
        self._resume: Progress | None = None
        named = stages if isinstance(stages, Mapping) else dict(enumerate(stages))
        for key, given in named.items():
            stage = build("", given)
            options = options_of(stage) if isinstance(stage, (AsyncStage, Stage)) else {}
            if isinstance(stage, (AsyncStage, Stage)):
                stage = stage.stage if isinstance(stage, AsyncStage) else stage.function
            self.add_stage(stage, name=key if isinstance(key, str) else None, **options)

    @property
    def config(self) -> Config:
        """Config with the current stages, including those added later."""
        stages = {name: config_of(stage) for name, stage in self._stages.items()}
        config: Config = get("pipelines/async").config(
            stages=stages, buffer=self.buffer, ordered=self.ordered, overload=self.overload
        )
        return config

    @config.setter
    def config(self, config: Config) -> None:
        """Ignore the original config, which does not know the stages added later."""

    @property
    def stages(self) -> dict[str, Callable[..., Any]]:
        """Functions and modules of the stages, by name."""
        return {name: stage.function for name, stage in self._stages.items()}

    def add_stage(
        self,
        stage: ComponentLike,
        name: str | None = None,
        *,
        concurrency: int = 1,
        timeout: float | None = None,
        on_error: OnError = "raise",
        max_failures: int | None = None,
        batch: Batch | None = None,
        pure: bool = False,
    ) -> Self:
        """Append a stage, and return the pipeline.

        Args:
            stage: Function, coroutine function or module from an item to its result, or the
                registry name or config of a module. With `batch`, a function takes and returns a
                list, and a module takes stacked tensors.
            name: Name of the stage. Default: that of the function or class.
            concurrency: Maximum number of calls at once. It must be 1 for a module.
            timeout: Maximum duration of a call in seconds. After it, the items of the call fail. A
                thread cannot be stopped: it takes its slot until it returns, and `stats` counts it
                as abandoned. Default: no limit, and a call that hangs blocks its items.
            on_error: What happens to an item that fails: "raise" makes `map` raise the error,
                "yield" returns a `Failure` in place of the result, "skip" drops the item.
            max_failures: Maximum number of failures in one `map` or `run`, for "yield" and "skip".
                Default: no limit.
            batch: Size and wait of the batches. Default: the stage takes single items.
            pure: Whether the stage has no side effects, so that a failed batch is run again in
                halves until only the items that fail alone have failed.
        """
        if self._engine is not None:
            raise ArgumentError("AsyncPipeline.add_stage: close the pipeline before adding a stage")
        described = isinstance(stage, (str, Mapping, Config))
        function: Any = build("", stage) if described else stage
        if name is None:
            name = unique_name(default_name(function), self._stages)
        if check_name(name) in self._stages:
            raise ArgumentError(f"AsyncPipeline.add_stage: there is a stage named {name!r} already")
        if isinstance(function, Module):
            evaluate_module(function)
        self._stages[name] = Stage(
            function, name, concurrency, timeout, on_error, max_failures, batch, pure
        )
        return self

    async def start(self) -> Self:
        """Start the pipeline on the running event loop; `async with` does so."""
        if self._engine is not None and not self._engine.loop.is_closed():
            raise ArgumentError("AsyncPipeline: it was started already; call aclose() first")
        self._evaluate_modules()
        self._engine = self._new_engine()
        return self

    def _evaluate_modules(self) -> None:
        """Compute lazy weights in this thread, before the threads of the stages use them."""
        for stage in self._stages.values():
            if isinstance(stage.function, Module):
                evaluate_module(stage.function)

    def _new_engine(self) -> Engine:
        if not self._stages:
            raise ArgumentError("AsyncPipeline: it has no stages; call add_stage(...) first")
        self._last = Engine(tuple(self._stages.values()), self.buffer, self.callbacks)
        return self._last

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.aclose(drain=kind is None)

    def _running(self) -> Engine:
        """Return the engine; raise PipelineClosed if there is none on this event loop."""
        engine = self._engine
        if engine is None:
            raise PipelineClosed("the pipeline is not running: use `async with pipeline:`")
        if engine.loop is not asyncio.get_running_loop():
            raise PipelineClosed("the pipeline was started on another event loop")
        return engine

    async def submit(self, item: Any, *, timeout: float | None = None) -> Any:
        """Return the result of one item.

        Canceling the call cancels the item.

        Args:
            item: Input of the first stage.
            timeout: Seconds until the deadline, after which no stage starts with the item. Default:
                no deadline.

        Raises:
            Overloaded: The buffer is full, and `overload` is "reject".
            DeadlineExceeded: The deadline passed.
            ItemSkipped: The item failed in a stage with `on_error="skip"`.
            PipelineClosed: The pipeline was closed before the item was finished.
        """
        engine = self._running()
        _check_timeout("submit", timeout)
        deadline = None if timeout is None else engine.loop.time() + timeout
        evaluate(item)
        await self._admit(engine, deadline)
        future: asyncio.Future[Any] = engine.loop.create_future()
        accepted = engine.accept(item, deadline, _completer(future))
        try:
            return await future
        finally:
            engine.cancel(accepted)  # without effect on an item that has its outcome
            del future, accepted  # the error of a future refers to this frame

    async def _admit(self, engine: Engine, deadline: float | None) -> None:
        try:
            if self.overload == "wait":
                await engine.admission.acquire(deadline)
            elif not engine.admission.try_acquire():
                raise Overloaded(f"the pipeline is full: {self.buffer} items are in flight")
        except (Overloaded, PipelineClosed, DeadlineExceeded, asyncio.CancelledError):
            engine.rejected += 1
            raise

    def map(
        self, source: Iterable[Any] | AsyncIterable[Any], *, timeout: float | None = None
    ) -> MapStream:
        """Return the results of all items of a source, for `async for`.

        At most `buffer` items are read ahead of the consumer. Leaving the loop early cancels the
        items in flight. Iterables other than sequences are read in a thread.

        Args:
            source: Iterable or asynchronous iterable of items.
            timeout: Seconds from reading an item to its deadline. Default: no deadline.
        """
        return self._stream(self._running(), source, timeout)

    def _stream(self, engine: Engine, source: object, timeout: float | None) -> MapStream:
        _check_timeout("map", timeout)
        self._progress, self._resume = self._resume or Progress(), None
        state = MapState(engine, self.ordered, self.buffer, timeout, self._progress)
        return MapStream(state, source)

    def run(
        self,
        data: Iterable[Any] | AsyncIterable[Any],
        *,
        timeout: float | None = None,
        close_timeout: float = 30.0,
    ) -> list[Any]:
        """Return the results of all items; blocks until they are finished.

        It runs on an event loop of its own in a thread, also inside another event loop, such as
        in a notebook. The calling thread reads the data.

        Args:
            data: Iterable or asynchronous iterable of items.
            timeout: Seconds from reading an item to its deadline. Default: no deadline.
            close_timeout: Seconds to wait at the end for calls that hang.
        """
        before = self._progress
        self._evaluate_modules()

        async def work(source: object) -> list[Any]:
            engine = self._new_engine()
            results = self._stream(engine, source, timeout)
            try:
                return [each async for each in results]
            finally:
                await results.aclose()
                await engine.aclose(drain=False, timeout=close_timeout)

        try:
            return Background(work, data).run()
        except BaseException:
            self._progress = before  # nothing was delivered to the caller
            raise

    async def aclose(self, *, drain: bool = True, timeout: float = 30.0) -> None:
        """Close the pipeline: refuse new items, finish the accepted ones, end the threads.

        Calling it again waits for the same end, and may end a drain with `drain=False`.

        Args:
            drain: Whether to finish the accepted items. Otherwise they fail with `PipelineClosed`.
            timeout: Seconds after which the unfinished items fail with `PipelineClosed`, and
                threads that hang are abandoned.
        """
        engine = self._engine
        if engine is None:
            return
        if engine.loop.is_closed():
            engine.lose_loop()
        else:
            self._running()
            await engine.aclose(drain, timeout)
        if self._engine is engine:
            self._engine = None

    def stats(self) -> Stats:
        """Return the counts and measurements of the running pipeline, or of the last run."""
        engine = self._engine or self._last
        return engine.stats() if engine is not None else Stats()

    @property
    def healthy(self) -> bool:
        """Whether the pipeline works: no thread hangs after its timeout, no internal error."""
        return self.stats().healthy

    def state_dict(self) -> dict[str, Any]:
        """Return which items of the last `map` or `run` were delivered.

        "delivered" is the number of items at the start of the source that all were delivered.
        "beyond" lists ranges of later items that were delivered too, if results are unordered.
        """
        return (self._resume or self._progress).to_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next `map` or `run` leave out the items that were delivered before.

        Args:
            state: Result of `state_dict`.
        """
        self._resume = Progress.from_dict(state)

    def __repr__(self) -> str:
        names = ", ".join(self._stages)
        return f"AsyncPipeline({names}; buffer={self.buffer}, ordered={self.ordered})"


def _check_timeout(method: str, timeout: float | None) -> None:
    if timeout is not None and math.isnan(timeout):
        raise ArgumentError(
            f"AsyncPipeline.{method}: timeout must be a number of seconds or None, not {timeout!r}"
        )


def _completer(future: asyncio.Future[Any]) -> Callable[[Item, Result], None]:
    """Return the function that completes a future with the result of an item."""

    def complete(item: Item, result: Result) -> None:
        if future.done():
            return
        if result.error is not None:
            future.set_exception(result.error)
        elif result.kind == "value":
            future.set_result(result.value)
        else:
            future.cancel()

    return complete
