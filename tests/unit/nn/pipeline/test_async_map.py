"""Order, backpressure, early ends and resuming of `map`, `submit` and `run`."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import random
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from ember_ml.nn.pipeline import AsyncPipeline, Batch, Overloaded, PipelineClosed
from ember_ml.nn.pipeline.asynchronous import PipelineError
from tests.async_pipelines import check_counts, collect, passes, submit_all
from tests.virtual_time import run_virtually

DELAYS = [each / 40 for each in random.Random(0).sample(range(40), 40)]


async def sleep(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


def sleeping(**options: Any) -> AsyncPipeline:
    return AsyncPipeline(**options).add_stage(sleep, concurrency=64)


class Source:
    """Asynchronous source that counts the items that were read."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[Any]:
        for item in self.items:
            self.read += 1
            yield item


def test_an_ordered_map_keeps_the_order_of_the_source() -> None:
    async def main() -> None:
        async with sleeping(buffer=8) as pipe:
            assert await collect(pipe.map(DELAYS)) == DELAYS
            assert await collect(pipe.map(Source(DELAYS))) == DELAYS
        check_counts(pipe.stats())

    run_virtually(main())


def test_an_unordered_map_returns_results_as_they_are_completed() -> None:
    async def main() -> None:
        async with sleeping(buffer=64, ordered=False) as pipe:
            assert await collect(pipe.map(DELAYS)) == sorted(DELAYS)
        async with sleeping(buffer=4, ordered=False) as pipe:
            results = await collect(pipe.map(DELAYS))
            assert sorted(results) == sorted(DELAYS)
            assert results != DELAYS

    run_virtually(main())


def test_the_reorder_window_counts_against_the_buffer() -> None:
    async def main() -> None:
        source = Source([100.0] + [1.0] * 50)
        async with sleeping(buffer=6) as pipe:
            results = pipe.map(source)
            first = asyncio.ensure_future(anext(results))
            await asyncio.sleep(50.0)  # the first item is slow, the others have finished
            assert (source.read, pipe.stats().accepted, pipe.stats().in_flight) == (6, 6, 1)
            assert await first == 100.0
            assert await collect(results) == [1.0] * 50

    run_virtually(main())


@pytest.mark.parametrize("ordered", [True, False])
def test_a_slow_consumer_stops_the_reading(ordered: bool) -> None:
    async def main() -> None:
        source, taken = Source(DELAYS), 0
        async with sleeping(buffer=5, ordered=ordered) as pipe:
            async for _ in pipe.map(source):
                taken += 1
                await asyncio.sleep(10.0)
                assert source.read <= taken + 5
                assert pipe.stats().in_flight <= 5
        assert taken == len(DELAYS)
        check_counts(pipe.stats())

    run_virtually(main())


def test_a_consumer_may_submit_to_the_same_pipeline() -> None:
    async def main() -> None:
        results = []
        async with sleeping(buffer=2) as pipe:
            async for result in pipe.map([0.1] * 10):
                results.append(await pipe.submit(result + 1.0))
        assert results == [1.1] * 10

    run_virtually(main())


def test_two_maps_share_a_pipeline() -> None:
    async def main() -> None:
        async with sleeping(buffer=3) as pipe:
            both = await asyncio.gather(*(collect(pipe.map(DELAYS)) for _ in range(2)))
        assert both == [DELAYS, DELAYS]
        check_counts(pipe.stats())

    run_virtually(main())


def test_submit_waits_for_a_place_in_the_order_of_the_calls() -> None:
    async def main() -> None:
        order: list[int] = []

        async def stage(item: int) -> int:
            order.append(item)
            await asyncio.sleep(1.0)
            return item

        async with AsyncPipeline(buffer=2).add_stage(stage, concurrency=2) as pipe:
            submitted = asyncio.ensure_future(submit_all(pipe, range(9)))
            for _ in range(4):
                await asyncio.sleep(0.5)
                assert pipe.stats().in_flight <= 2
            assert await submitted == list(range(9))
        assert order == list(range(9))

    run_virtually(main())


def test_a_full_pipeline_rejects_with_overload_reject() -> None:
    async def main() -> None:
        async with sleeping(buffer=2, overload="reject") as pipe:
            results = await submit_all(pipe, [1.0] * 5)
            assert results[:2] == [1.0, 1.0]
            for result in results[2:]:
                assert isinstance(result, Overloaded)
                assert "2 items are in flight" in str(result)
            assert await pipe.submit(2.0) == 2.0  # there is room again
            assert await collect(pipe.map([1.0] * 9)) == [1.0] * 9  # a map waits
        stats = check_counts(pipe.stats())
        assert (stats.accepted, stats.rejected) == (12, 3)

    run_virtually(main())


@pytest.mark.parametrize("explicit", [False, True])
def test_leaving_a_map_early_cancels_its_items_and_stops_reading(explicit: bool) -> None:
    async def main() -> None:
        source = Source([1.0, 1.0] + [50.0] * 100)
        async with sleeping(buffer=6) as pipe:
            results = pipe.map(source)
            async for _ in results:
                break
            if explicit:
                await results.aclose()
            del results
            await passes()
            stats = check_counts(pipe.stats(), closed=False)
            assert stats.in_flight == 0
            assert stats.cancelled >= 4
            read = source.read
            await asyncio.sleep(500.0)
            assert source.read == read <= 8
            assert await pipe.submit(1.0) == 1.0  # the places are free
            assert stats.stages[0].running == 0
        assert asyncio.get_running_loop().time() < 600

    run_virtually(main())


def test_a_map_that_is_never_iterated_reads_nothing() -> None:
    async def main() -> None:
        source = Source([1.0])
        async with sleeping() as pipe:
            pipe.map(source)
            await passes()
        assert source.read == 0

    run_virtually(main())


def test_a_dropped_map_ends_also_when_another_thread_collects_it() -> None:
    async def main() -> None:
        async with sleeping(buffer=4) as pipe:
            holder = [pipe.map([1000.0] * 8)]
            task = asyncio.ensure_future(anext(holder[0]))
            await passes()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            del task
            thread = threading.Thread(target=lambda: (holder.clear(), gc.collect()))
            thread.start()
            thread.join()
            await passes()
            assert pipe.stats().cancelled == 4

    asyncio.run(main())


def test_two_tasks_cannot_read_one_map() -> None:
    async def main() -> None:
        async with sleeping() as pipe:
            results = pipe.map([1.0, 2.0])
            first = asyncio.ensure_future(anext(results))
            await passes()
            with pytest.raises(PipelineError, match="two tasks"):
                await anext(results)
            assert await first == 1.0

    run_virtually(main())


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("stop", [0, 1, 7, 39, 40])
def test_a_map_resumes_after_the_delivered_items(ordered: bool, stop: int) -> None:
    items = [(number, delay) for number, delay in enumerate(DELAYS)]

    async def stage(item: tuple[int, float]) -> int:
        await asyncio.sleep(item[1])
        if item[0] % 10 == 3:
            raise ValueError("skip it")
        return item[0]

    def pipeline() -> AsyncPipeline:
        pipe = AsyncPipeline(buffer=8, ordered=ordered)
        return pipe.add_stage(stage, concurrency=8, on_error="skip")

    async def part(state: Any, number: int | None) -> tuple[list[int], Any]:
        async with pipeline() as pipe:
            if state is not None:
                pipe.load_state_dict(state)
                assert pipe.state_dict() == state
            results, received = pipe.map(items), []
            while number is None or len(received) < number:
                try:
                    received.append(await anext(results))
                except StopAsyncIteration:
                    break
            assert pipe.state_dict() == results.state_dict()
            return received, pipe.state_dict()

    before, state = run_virtually(part(None, stop))
    rest, final = run_virtually(part(state, None))
    wanted = [number for number in range(40) if number % 10 != 3]
    assert sorted(before + rest) == wanted  # each once
    if ordered:
        assert before + rest == wanted
        assert state["beyond"] == []
        assert all(number < state["delivered"] for number in before)
    assert final == {"delivered": 40, "beyond": []}
    assert len(state["beyond"]) <= 8 + 1


def test_an_item_that_raised_is_not_part_of_the_delivered_prefix() -> None:
    async def main() -> None:
        async def stage(item: int) -> float:
            return 1 / (item - 2)

        async with AsyncPipeline().add_stage(stage) as pipe:
            with pytest.raises(ZeroDivisionError):
                await collect(pipe.map(range(5)))
            assert pipe.state_dict() == {"delivered": 2, "beyond": []}

    run_virtually(main())


@pytest.mark.parametrize(
    "state", [{}, {"delivered": -1}, {"delivered": "3"}, {"delivered": 5, "beyond": [[4, 6]]}, 3]
)
def test_damaged_states_are_refused(state: Any) -> None:
    with pytest.raises(ValueError, match="load_state_dict: the state must be"):
        AsyncPipeline().load_state_dict(state)


def doubled(**options: Any) -> AsyncPipeline:
    pipe = AsyncPipeline(**options).add_stage(lambda x: x * 2, name="double", concurrency=3)
    return pipe.add_stage(lambda xs: [x + 1 for x in xs], name="add", batch=Batch(4))


SOURCES: dict[str, Any] = {
    "list": lambda: list(range(50)),
    "generator": lambda: (number for number in range(50)),
    "asynchronous": lambda: Source(list(range(50))),
}


@pytest.mark.parametrize("name", SOURCES)
def test_run_takes_any_source(name: str) -> None:
    pipe = doubled(buffer=8)
    assert pipe.run(SOURCES[name]()) == [2 * number + 1 for number in range(50)]
    assert pipe.state_dict() == {"delivered": 50, "beyond": []}
    assert check_counts(pipe.stats()).completed == 50
    assert pipe.run([]) == []


@pytest.mark.parametrize("name", SOURCES)
def test_run_works_inside_of_a_running_loop(name: str) -> None:
    async def main() -> list[int]:
        return doubled(buffer=8).run(SOURCES[name]())

    assert asyncio.run(main()) == [2 * number + 1 for number in range(50)]


@pytest.mark.parametrize("name", SOURCES)
def test_map_takes_any_source(name: str) -> None:
    async def main() -> list[int]:
        async with doubled(buffer=8) as pipe:
            return await collect(pipe.map(SOURCES[name]()))

    assert asyncio.run(main()) == [2 * number + 1 for number in range(50)]


def test_run_reads_a_generator_in_the_calling_thread() -> None:
    threads: set[threading.Thread] = set()

    def source() -> Iterator[int]:
        for number in range(5):
            threads.add(threading.current_thread())
            yield number

    assert doubled(buffer=2).run(source()) == [1, 3, 5, 7, 9]
    assert threads == {threading.current_thread()}


def test_a_source_that_blocks_does_not_block_the_loop_of_a_map() -> None:
    release = threading.Event()

    def source() -> Iterator[int]:
        yield 1
        assert release.wait(60)
        yield 2

    async def main() -> None:
        async with doubled() as pipe:
            results = pipe.map(source())
            assert await anext(results) == 3
            assert await pipe.submit(5) == 11  # while the source blocks
            release.set()
            assert await collect(results) == [5]

    asyncio.run(main())


def test_the_rest_after_a_failed_run_is_not_counted_as_delivered() -> None:
    pipe = AsyncPipeline(buffer=2).add_stage(lambda x: 1 / (x - 3))
    with pytest.raises(ZeroDivisionError):
        pipe.run(range(6))
    assert pipe.state_dict() == {"delivered": 0, "beyond": []}


@pytest.mark.parametrize("source", [5, None])
def test_a_source_must_be_iterable(source: Any) -> None:
    with pytest.raises(TypeError, match=r"must be an iterable|not iterable"):
        doubled().run(source)


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")


def test_stages_see_the_context_of_the_start() -> None:
    async def coroutine(item: int) -> tuple[str, str]:
        return thread_value[item], VARIABLE.get()

    thread_value: dict[int, str] = {}

    def function(item: int) -> int:
        thread_value[item] = VARIABLE.get()
        return item

    token = VARIABLE.set("outer")
    try:
        pipe = AsyncPipeline().add_stage(function).add_stage(coroutine)
        assert pipe.run([1, 2]) == [("outer", "outer")] * 2
    finally:
        VARIABLE.reset(token)


def test_a_pipeline_works_again_after_it_was_closed() -> None:
    pipe = doubled(buffer=4)

    async def main() -> None:
        with pytest.raises(PipelineClosed, match="not running"):
            await pipe.submit(1)
        for _ in range(2):
            async with pipe:
                assert await pipe.submit(1) == 3
                with pytest.raises(ValueError, match="started already"):
                    await pipe.start()
                with pytest.raises(ValueError, match="close the pipeline"):
                    pipe.add_stage(print)
            assert pipe.stats().accepted == 1

    for _ in range(2):
        asyncio.run(main())
        assert pipe.run([1]) == [3]


def test_a_place_granted_to_a_canceled_call_is_not_lost() -> None:
    async def main() -> None:
        async with sleeping(buffer=1) as pipe:
            first = asyncio.ensure_future(pipe.submit(1.0))
            await passes()
            second = asyncio.ensure_future(pipe.submit(1.0))
            await passes()
            engine = pipe._engine
            assert engine is not None
            first.add_done_callback(lambda _: second.cancel())
            engine.cancel(next(iter(engine._items)))  # grants the place to the second call
            second.cancel()  # before it has resumed
            await asyncio.gather(first, second, return_exceptions=True)
            async with asyncio.timeout(100.0):
                assert await pipe.submit(1.0) == 1.0
        check_counts(pipe.stats())

    run_virtually(main())
