"""Failing items, cancellation, deadlines and hanging stages of asynchronous pipelines."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import pytest

from ember_ml.nn.pipeline import AsyncPipeline, Batch, DeadlineExceeded, Failure, PipelineClosed
from ember_ml.nn.pipeline.asynchronous import (
    ItemSkipped,
    StageError,
    StageStuck,
    StageTimeout,
    TooManyFailures,
)
from tests.async_pipelines import after, check_counts, collect, passes, submit_all, until
from tests.virtual_time import run_virtually


def reciprocal(x: float) -> float:
    return 1 / x


async def reciprocal_later(x: float) -> float:
    await asyncio.sleep(abs(x))
    return 1 / x


EITHER = pytest.mark.parametrize("function", [reciprocal, reciprocal_later])


@EITHER
def test_raise_ends_a_map_with_a_note_of_stage_and_item(function: Any) -> None:
    pipe = AsyncPipeline(buffer=4).add_stage(lambda x: x).add_stage(function, name="reciprocal")
    with pytest.raises(ZeroDivisionError) as caught:
        pipe.run([0.01, 0.02, 0.0, 0.01, 0.01, 0.01])
    assert caught.value.__notes__ == ["in stage 'reciprocal', item 2"]
    stats = check_counts(pipe.stats())
    assert stats.failed == 1
    assert stats.completed >= 2


def test_raise_cancels_the_other_items_of_the_map() -> None:
    started: list[int] = []

    async def stage(item: int) -> int:
        started.append(item)
        if item == 1:
            raise ValueError("no")
        await asyncio.sleep(100.0)
        return item

    async def main() -> None:
        pipe = AsyncPipeline(buffer=4, ordered=False).add_stage(stage, concurrency=4)
        async with pipe:
            with pytest.raises(ValueError, match="no"):
                await collect(pipe.map(iter_async(1000)))
            await passes()
            stats = pipe.stats()
            assert (stats.accepted, stats.failed, stats.cancelled) == (len(started), 1, 3)
            assert stats.stages[0].running == 0
            assert asyncio.get_running_loop().time() == 0.0

    run_virtually(main())


async def iter_async(number: int) -> Any:
    for item in range(number):
        yield item


@EITHER
def test_yield_returns_a_failure_in_place_of_the_result(function: Any) -> None:
    pipe = AsyncPipeline(buffer=4).add_stage(function, name="reciprocal", on_error="yield")
    first, failure, last = pipe.run([0.01, 0.0, 0.02])
    assert (first, last) == (100.0, 50.0)
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.index) == ("reciprocal", 1)
    assert isinstance(failure.error, ZeroDivisionError)
    assert check_counts(pipe.stats()).failed == 1


@EITHER
def test_skip_leaves_out_failed_items(function: Any) -> None:
    pipe = AsyncPipeline(buffer=2).add_stage(function, on_error="skip")
    assert pipe.run([0.0, 0.01, 0.0, 0.0, 0.02, 0.0]) == [100.0, 50.0]
    stats = check_counts(pipe.stats())
    assert (stats.completed, stats.skipped, stats.failed) == (2, 4, 0)


@pytest.mark.parametrize("on_error", ["skip", "yield"])
def test_more_failures_than_allowed_raise(on_error: Any) -> None:
    pipe = AsyncPipeline(buffer=2)
    pipe.add_stage(reciprocal, name="f", on_error=on_error, max_failures=2)
    assert len(pipe.run([0, 1, 0, 1])) in (2, 4)
    with pytest.raises(TooManyFailures, match="stage 'f': more than 2 items failed") as caught:
        pipe.run([0, 1, 0, 1, 0, 1])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    check_counts(pipe.stats())


def test_submit_follows_the_policy_of_the_stage() -> None:
    async def main() -> None:
        for on_error, kind in [("raise", ZeroDivisionError), ("skip", ItemSkipped)]:
            async with AsyncPipeline().add_stage(reciprocal, on_error=on_error) as pipe:
                with pytest.raises(kind):
                    await pipe.submit(0)
                assert await pipe.submit(2) == 0.5
        async with AsyncPipeline().add_stage(reciprocal, on_error="yield") as pipe:
            assert isinstance((await pipe.submit(0)).error, ZeroDivisionError)

    asyncio.run(main())


def test_an_error_of_the_source_comes_after_the_items_before_it() -> None:
    def source() -> Any:
        yield from (1, 2, 4)
        raise OSError("the disk is gone")

    pipe, results = AsyncPipeline(buffer=2).add_stage(reciprocal), []

    async def main() -> None:
        async with pipe:
            async for result in pipe.map(source()):
                results.append(result)

    with pytest.raises(OSError, match="the disk is gone") as caught:
        asyncio.run(main())
    assert results == [1.0, 0.5, 0.25]
    assert caught.value.__notes__ == ["in the source of the pipeline, item 3"]
    with pytest.raises(OSError, match="the disk is gone"):
        pipe.run(source())


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_a_dying_stage_fails_every_item(error: BaseException) -> None:
    release = threading.Event()

    def stage(item: int) -> int:
        if item == 2:
            raise error
        release.wait(60)
        return item

    async def main() -> None:
        async with AsyncPipeline().add_stage(stage, name="f", concurrency=3) as pipe:
            results = await submit_all(pipe, range(8))
            assert all(isinstance(result, PipelineClosed) for result in results)
            assert "stage 'f' failed with" in str(results[0])
            assert results[0].__cause__ is error
            assert not pipe.healthy
            with pytest.raises(PipelineClosed):
                await pipe.submit(1)
            release.set()
        check_counts(pipe.stats())

    asyncio.run(main())


def test_an_error_inside_of_the_pipeline_fails_every_item() -> None:
    async def main() -> None:
        async with AsyncPipeline(buffer=4).add_stage(reciprocal_later) as pipe:
            engine = pipe._engine
            waiting = asyncio.ensure_future(submit_all(pipe, [5.0, 6.0]))
            mapped = asyncio.ensure_future(collect(pipe.map(hang())))
            await passes()
            engine.guarded(lambda: 1 // 0)()  # as a callback of the event loop with a defect
            for result in await waiting:
                assert isinstance(result.__cause__, ZeroDivisionError)
            with pytest.raises(PipelineClosed):
                await mapped
            assert not pipe.healthy
        check_counts(pipe.stats())

    run_virtually(main())


async def hang() -> Any:
    await asyncio.get_running_loop().create_future()
    yield


def test_a_stage_task_that_is_canceled_from_outside_fails_its_item() -> None:
    async def main() -> None:
        async with AsyncPipeline().add_stage(reciprocal_later, name="f") as pipe:
            waiting = asyncio.ensure_future(submit_all(pipe, [5.0, 4.0]))
            await passes()
            (task,) = [each for each in asyncio.all_tasks() if each.get_name().endswith(" f")]
            task.cancel()
            failed, completed = await waiting
            assert isinstance(failed, StageError)
            assert completed == 0.25
        check_counts(pipe.stats())

    run_virtually(main())


def test_a_function_that_returns_a_coroutine_is_an_error() -> None:
    pipe = AsyncPipeline().add_stage(lambda x: reciprocal_later(x), name="f")
    with pytest.raises(StageError, match="'f' returned an awaitable; declare its function with"):
        pipe.run([1.0])


def test_canceled_items_are_removed_from_every_queue() -> None:
    seen: list[int] = []

    async def first(item: int) -> int:
        return item

    async def second(item: int) -> int:
        seen.append(item)
        await asyncio.sleep(10.0)
        return item

    async def main() -> None:
        pipe = AsyncPipeline(buffer=3).add_stage(first).add_stage(second)
        async with pipe:
            tasks = [asyncio.ensure_future(pipe.submit(item)) for item in range(5)]
            await asyncio.sleep(1.0)
            stats = pipe.stats()
            assert (stats.in_flight, stats.stages[1].depth, stats.stages[1].running) == (3, 2, 1)
            tasks[1].cancel()  # waits for the second stage
            tasks[3].cancel()  # waits for a place in the buffer
            await asyncio.sleep(1.0)
            stats = pipe.stats()
            assert (stats.cancelled, stats.rejected, stats.stages[1].depth) == (1, 1, 2)
            results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [results[i] for i in (0, 2, 4)] == [0, 2, 4]
        assert seen == [0, 2, 4]
        check_counts(pipe.stats())

    run_virtually(main())


def test_canceling_a_coroutine_stage_stops_it() -> None:
    stopped: list[int] = []

    async def stage(item: int) -> int:
        try:
            await asyncio.sleep(100.0)
        finally:
            stopped.append(item)
        return item

    async def main() -> None:
        async with AsyncPipeline().add_stage(stage) as pipe:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await pipe.submit(7)
            await passes()
            assert stopped == [7]
            assert pipe.stats().stages[0].running == 0
        assert check_counts(pipe.stats()).cancelled == 1

    run_virtually(main())


def test_the_thread_of_a_canceled_item_keeps_its_slot_and_is_counted_as_abandoned() -> None:
    release, started, finished = threading.Event(), threading.Event(), []

    def stage(item: int) -> int:
        if item == 0:
            started.set()
            release.wait(60)
        finished.append(item)
        return item

    async def main() -> None:
        async with AsyncPipeline().add_stage(stage, concurrency=1) as pipe:
            task = asyncio.ensure_future(pipe.submit(0))
            await until(started.is_set)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            other = asyncio.ensure_future(pipe.submit(1))
            await passes()
            stats = check_counts(pipe.stats(), closed=False)
            assert (stats.abandoned, stats.cancelled, stats.stages[0].running) == (1, 1, 1)
            assert not stats.healthy
            assert finished == []  # the slot is taken
            release.set()
            assert await other == 1
            assert finished == [0, 1]
            assert pipe.healthy
        assert check_counts(pipe.stats()).completed == 1

    asyncio.run(main())


def test_no_stage_runs_after_the_deadline() -> None:
    seen: list[tuple[str, int]] = []

    async def first(item: int) -> int:
        seen.append(("first", item))
        await asyncio.sleep(10.0)
        return item

    async def second(item: int) -> int:
        seen.append(("second", item))
        return item

    async def main() -> None:
        async with AsyncPipeline().add_stage(first, name="first").add_stage(second) as pipe:
            results = await submit_all(pipe, [0, 1, 2], timeout=15.0)
            assert results[0] == 0
            assert isinstance(results[1], DeadlineExceeded)
            assert isinstance(results[1], TimeoutError)
            assert "item 1 passed in stage 'first'" in str(results[1])
            assert asyncio.get_running_loop().time() == 15.0  # at once, not at the next dequeue
        stats = check_counts(pipe.stats())
        assert (stats.completed, stats.expired) == (1, 2)
        assert seen == [("first", 0), ("second", 0), ("first", 1)]

    run_virtually(main())


def test_a_deadline_that_has_passed_before_the_dequeue_prevents_the_call() -> None:
    seen: list[int] = []

    async def stage(item: int) -> int:
        seen.append(item)
        return item

    async def main() -> None:
        async with AsyncPipeline().add_stage(stage) as pipe:
            for timeout in (0.0, -1.0):
                with pytest.raises(DeadlineExceeded):
                    await pipe.submit(1, timeout=timeout)
        assert check_counts(pipe.stats()).expired == 2
        assert seen == []

    run_virtually(main())


@pytest.mark.parametrize("policy", ["raise", "yield", "skip"])
def test_submit_raises_when_its_own_deadline_passes(policy: Any) -> None:
    async def main() -> None:
        async with AsyncPipeline().add_stage(reciprocal_later, on_error=policy) as pipe:
            with pytest.raises(DeadlineExceeded):
                await pipe.submit(5.0, timeout=1.0)
        assert check_counts(pipe.stats()).expired == 1

    run_virtually(main())


def test_the_deadline_includes_the_wait_for_a_place() -> None:
    async def main() -> None:
        async with AsyncPipeline(buffer=1).add_stage(reciprocal_later) as pipe:
            slow = asyncio.ensure_future(pipe.submit(10.0))
            await passes()
            with pytest.raises(DeadlineExceeded, match="waited for a place"):
                await pipe.submit(1.0, timeout=2.0)
            assert asyncio.get_running_loop().time() == 2.0
            assert await slow == 0.1
            assert await pipe.submit(1.0, timeout=2.0) == 1.0  # the place was not lost
        stats = check_counts(pipe.stats())
        assert (stats.accepted, stats.rejected) == (2, 1)

    run_virtually(main())


def test_items_of_a_map_have_deadlines() -> None:
    async def main() -> None:
        pipe = AsyncPipeline().add_stage(reciprocal_later, on_error="yield", concurrency=3)
        async with pipe:
            first, second = await collect(pipe.map([1.0, 8.0], timeout=4.0))
        assert first == 1.0
        assert isinstance(second.error, DeadlineExceeded)
        assert check_counts(pipe.stats()).expired == 1

    run_virtually(main())


def test_a_coroutine_that_exceeds_the_timeout_of_its_stage_is_canceled() -> None:
    async def main() -> None:
        async with AsyncPipeline().add_stage(reciprocal_later, name="f", timeout=3.0) as pipe:
            with pytest.raises(StageTimeout, match=r"'f' took longer than 3\.0 s for item 0"):
                await pipe.submit(50.0)
            assert await pipe.submit(2.0) == 0.5
            assert asyncio.get_running_loop().time() == 5.0
        assert check_counts(pipe.stats()).failed == 1

    run_virtually(main())


def test_items_behind_hanging_threads_fail_and_the_stage_recovers() -> None:
    release = threading.Event()

    def stage(item: int) -> int:
        if item < 2:
            release.wait(60)
        return item

    async def main() -> None:
        pipe = AsyncPipeline().add_stage(stage, name="f", concurrency=2, timeout=0.05)
        async with pipe:
            results = await submit_all(pipe, range(5))
            assert [type(each) for each in results] == [StageTimeout] * 2 + [StageStuck] * 3
            with pytest.raises(StageStuck, match="all 2 of its calls hang"):
                await pipe.submit(5)
            stats = check_counts(pipe.stats(), closed=False)
            assert (stats.abandoned, stats.healthy, stats.failed) == (2, False, 6)
            release.set()
            await until(lambda: pipe.healthy)
            assert await pipe.submit(6) == 6
        assert pipe.stats().healthy

    asyncio.run(main())


def test_a_batch_that_exceeds_the_timeout_fails_with_all_its_items() -> None:
    async def stage(items: list[float]) -> list[float]:
        await asyncio.sleep(max(items))
        return items

    async def main() -> None:
        async with AsyncPipeline().add_stage(stage, timeout=5.0, batch=Batch(2, 1.0)) as pipe:
            results = await submit_all(pipe, [1.0, 9.0, 2.0, 3.0])
        assert [isinstance(each, StageTimeout) for each in results] == [True, True, False, False]
        assert results[2:] == [2.0, 3.0]
        check_counts(pipe.stats())

    run_virtually(main())


def test_an_item_that_is_canceled_at_the_moment_of_its_result() -> None:
    async def main() -> None:
        async with AsyncPipeline().add_stage(reciprocal_later, concurrency=8) as pipe:
            tasks = [asyncio.ensure_future(pipe.submit(1.0)) for _ in range(4)]
            await after(1.0, passes(0))
            for number, task in enumerate(tasks):
                await passes(number)
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        check_counts(pipe.stats())

    run_virtually(main())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be an integer >= 1, not 0"),
        ({"timeout": 0.0}, "timeout must be a positive number of seconds"),
        ({"timeout": float("nan")}, "timeout must be a positive number of seconds"),
        ({"on_error": "ignore"}, "on_error must be 'raise' or 'yield' or 'skip', not 'ignore'"),
        ({"max_failures": 3}, "max_failures needs on_error"),
        ({"max_failures": -1, "on_error": "skip"}, "max_failures must be an integer >= 0"),
        ({"batch": 8}, "batch must be a Batch, not 8"),
        ({"name": "first"}, "there is a stage named 'first' already"),
    ],
)
def test_options_of_a_stage_are_checked(options: dict[str, Any], message: str) -> None:
    pipe = AsyncPipeline().add_stage(reciprocal, name="first")
    with pytest.raises((ValueError, TypeError), match=message):
        pipe.add_stage(reciprocal, **options)
    assert list(pipe.stages) == ["first"]


@pytest.mark.parametrize(
    ("stage", "message"),
    [(7, "must be a function, a coroutine function or a module, not 7"), (hang, "generator")],
)
def test_stages_are_checked(stage: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        AsyncPipeline().add_stage(stage)


@pytest.mark.parametrize("options", [{"buffer": 0}, {"buffer": 2.5}, {"overload": "drop"}])
def test_options_of_a_pipeline_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        AsyncPipeline(**options)


def test_a_pipeline_without_stages_does_not_run() -> None:
    with pytest.raises(ValueError, match="no stages"):
        AsyncPipeline().run([1])


@pytest.mark.parametrize("error", [StopIteration, StopAsyncIteration])
def test_a_stage_or_source_cannot_end_the_iteration(error: type[Exception]) -> None:
    def fail(item: int) -> int:
        if item == 1:
            raise error
        return item

    async def fail_later(item: int) -> int:
        return fail(item)

    for function in (fail, fail_later):
        pipe = AsyncPipeline().add_stage(function, name="fail")
        with pytest.raises(RuntimeError, match=error.__name__) as caught:
            pipe.run([0, 1, 2])
        assert caught.value.__notes__ == ["in stage 'fail', item 1"]
        assert check_counts(pipe.stats()).failed == 1


def test_a_source_that_raises_stop_async_iteration_has_not_ended() -> None:
    def source() -> Any:
        yield 1
        raise StopAsyncIteration

    with pytest.raises(StageError, match="StopAsyncIteration") as caught:
        AsyncPipeline().add_stage(reciprocal).run(source())
    assert caught.value.__notes__ == ["in the source of the pipeline, item 1"]


def test_a_timeout_is_a_number() -> None:
    async def submit() -> None:
        async with AsyncPipeline().add_stage(reciprocal) as pipe:
            await pipe.submit(1.0, timeout=math.nan)

    with pytest.raises(ValueError, match="submit: timeout must be a number of seconds"):
        asyncio.run(submit())
    with pytest.raises(ValueError, match="map: timeout must be a number of seconds"):
        AsyncPipeline().add_stage(reciprocal).run([1.0], timeout=math.nan)
