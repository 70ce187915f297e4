"""Closing of asynchronous pipelines, and their measurements."""

from __future__ import annotations

import asyncio
import io
import logging
import re
import threading
from typing import Any

import pytest

from ember_ml.nn.pipeline import AsyncPipeline, Batch, PipelineCallback, PipelineClosed
from tests.async_pipelines import (
    check_counts,
    collect,
    passes,
    pipeline_threads,
    submit_all,
    until,
    wait_for_no_threads,
)
from tests.virtual_time import run_virtually


async def sleep(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


def test_closing_finishes_accepted_items_and_refuses_new_ones() -> None:
    async def main() -> None:
        pipe = await AsyncPipeline(buffer=3).add_stage(sleep).start()
        submitted = asyncio.ensure_future(submit_all(pipe, [2.0] * 5))
        await asyncio.sleep(1.0)
        closing = asyncio.ensure_future(pipe.aclose())
        await passes()
        with pytest.raises(PipelineClosed):
            await pipe.submit(1.0)
        await closing
        results = await submitted
        assert results[:3] == [2.0] * 3
        assert all(isinstance(each, PipelineClosed) for each in results[3:])  # waited for a place
        stats = check_counts(pipe.stats())
        assert (stats.accepted, stats.completed, stats.rejected) == (3, 3, 3)
        assert asyncio.get_running_loop().time() == 6.0

    run_virtually(main())


def test_items_that_are_not_finished_within_the_timeout_fail() -> None:
    async def main() -> None:
        pipe = await AsyncPipeline().add_stage(sleep, concurrency=4).start()
        submitted = asyncio.ensure_future(submit_all(pipe, [2.0, 50.0]))
        await passes()
        await pipe.aclose(timeout=10.0)
        done, failed = await submitted
        assert done == 2.0
        assert isinstance(failed, PipelineClosed)
        assert "item 1 was not finished" in str(failed)
        assert asyncio.get_running_loop().time() == 10.0
        stats = check_counts(pipe.stats())
        assert (stats.completed, stats.failed) == (1, 1)

    run_virtually(main())


def test_closing_is_idempotent_and_may_end_a_drain() -> None:
    async def main() -> None:
        pipe = AsyncPipeline().add_stage(sleep)
        await pipe.aclose()  # it never ran
        await pipe.start()
        submitted = asyncio.ensure_future(submit_all(pipe, [50.0]))
        await passes()
        draining = [asyncio.ensure_future(pipe.aclose()) for _ in range(3)]
        await asyncio.sleep(1.0)
        assert not any(each.done() for each in draining)
        await pipe.aclose(drain=False)
        await asyncio.gather(*draining)
        assert isinstance((await submitted)[0], PipelineClosed)
        await pipe.aclose()
        assert asyncio.get_running_loop().time() == 1.0
        check_counts(pipe.stats())

    run_virtually(main())


def test_an_error_in_the_body_closes_without_draining() -> None:
    async def main() -> None:
        pipe = AsyncPipeline().add_stage(sleep)
        with pytest.raises(KeyError):  # noqa: PT012
            async with pipe:
                submitted = asyncio.ensure_future(submit_all(pipe, [50.0]))
                await passes()
                raise KeyError
        assert isinstance((await submitted)[0], PipelineClosed)
        assert asyncio.get_running_loop().time() == 0.0
        check_counts(pipe.stats())

    run_virtually(main())


def test_closing_during_a_map_delivers_what_was_accepted_and_then_raises() -> None:
    async def main() -> None:
        pipe, results = AsyncPipeline(buffer=2).add_stage(sleep), []
        await pipe.start()

        async def consume() -> None:
            async for result in pipe.map([1.0] * 100):
                results.append(result)

        consumer = asyncio.ensure_future(consume())
        await asyncio.sleep(4.5)
        await pipe.aclose()
        with pytest.raises(PipelineClosed, match="before item 6 was read"):
            await consumer
        assert results == [1.0] * 6  # never silently cut off
        assert check_counts(pipe.stats()).completed == 6

    run_virtually(main())


def test_results_that_were_not_consumed_can_be_read_after_the_close() -> None:
    async def main() -> None:
        async with AsyncPipeline(buffer=4).add_stage(sleep) as pipe:
            results = pipe.map([1.0] * 3)
            assert await anext(results) == 1.0
            await asyncio.sleep(10.0)
        assert await collect(results) == [1.0, 1.0]

    run_virtually(main())


def test_a_hanging_thread_does_not_hang_the_close() -> None:
    release = threading.Event()

    async def main() -> None:
        pipe = AsyncPipeline().add_stage(lambda x: release.wait(60), name="f")
        await pipe.start()
        submitted = asyncio.ensure_future(submit_all(pipe, [1, 2]))
        await until(lambda: pipe.stats().stages[0].running == 1)
        await pipe.aclose(timeout=0.05)
        assert all(isinstance(each, PipelineClosed) for each in await submitted)
        stats = check_counts(pipe.stats())
        assert (stats.abandoned, stats.healthy) == (1, False)
        assert [thread.name for thread in pipeline_threads()] == ["ember-ml pipeline f-0"]
        assert all(thread.daemon for thread in pipeline_threads())
        release.set()

    asyncio.run(main())
    assert wait_for_no_threads() == []


def test_a_hanging_source_does_not_hang_the_close() -> None:
    release, reading = threading.Event(), threading.Event()

    def source() -> Any:
        yield 1
        reading.set()
        release.wait(60)

    async def main() -> None:
        pipe = await AsyncPipeline().add_stage(lambda x: x).start()
        consumer = asyncio.ensure_future(collect(pipe.map(source())))
        await until(reading.is_set)
        await pipe.aclose(timeout=0.05)
        with pytest.raises(PipelineClosed):
            await consumer
        assert not pipe.healthy
        release.set()

    asyncio.run(main())


def test_threads_end_with_the_pipeline() -> None:
    async def main() -> None:
        barrier = threading.Barrier(4)

        def stage(item: int) -> int:
            barrier.wait(60)
            return item

        async with AsyncPipeline().add_stage(stage, concurrency=4) as pipe:
            assert await collect(pipe.map(range(8))) == list(range(8))
            assert len(pipeline_threads()) == 4
        assert pipeline_threads() == []  # at once

    asyncio.run(main())


def test_idle_threads_end_when_their_loop_was_closed() -> None:
    loop = asyncio.new_event_loop()
    pipe = AsyncPipeline().add_stage(lambda x: x)

    async def start() -> None:
        await pipe.start()
        await pipe.submit(1)

    loop.run_until_complete(start())
    assert len(pipeline_threads()) == 1
    loop.close()
    assert wait_for_no_threads() == []


class Recorder(PipelineCallback):
    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def on_accept(self, index: int) -> None:
        self.events.append(("accept", index))

    def on_stage_start(self, stage: str, size: int) -> None:
        self.events.append(("start", stage, size))

    def on_stage_end(self, stage: str, size: int, seconds: float) -> None:
        self.events.append(("end", stage, size, seconds))

    def on_outcome(self, index: int, outcome: str, seconds: float) -> None:
        self.events.append((outcome, index, seconds))


class Broken(PipelineCallback):
    def on_accept(self, index: int) -> None:
        raise ValueError("broken callback")


def test_callbacks_see_items_and_calls() -> None:
    async def stage(items: list[float]) -> list[float]:
        await asyncio.sleep(2.0)
        return [1 / item for item in items]

    async def main() -> None:
        recorder = Recorder()
        pipe = AsyncPipeline(callbacks=[recorder]).add_stage(
            stage, name="f", batch=Batch(2, 1.0), pure=True
        )
        async with pipe:
            await submit_all(pipe, [1.0, 0.0])
        assert recorder.events == [
            ("accept", 0),
            ("accept", 1),
            ("start", "f", 2),
            ("end", "f", 2, 6.0),
            ("completed", 0, 6.0),
            ("failed", 1, 6.0),
        ]

    run_virtually(main())


def test_a_failing_callback_changes_nothing() -> None:
    async def main() -> list[float]:
        async with AsyncPipeline(callbacks=[Broken()]).add_stage(sleep) as pipe:
            return await collect(pipe.map([1.0, 2.0]))

    written = io.StringIO()
    handler, logger = logging.StreamHandler(written), logging.getLogger("asyncio")
    logger.addHandler(handler)
    try:
        assert run_virtually(main()) == [1.0, 2.0]
    finally:
        logger.removeHandler(handler)
    assert "Broken.on_accept of an AsyncPipeline failed" in written.getvalue()


def test_stats_measure_depth_wait_run_time_and_batch_sizes() -> None:
    async def batched(items: list[float]) -> list[float]:
        await asyncio.sleep(4.0)
        return items

    async def main() -> None:
        pipe = AsyncPipeline().add_stage(sleep, name="sleep", concurrency=8)
        pipe.add_stage(batched, name='the "batch"', batch=Batch(2, 1.0))
        async with pipe:
            submitted = asyncio.ensure_future(submit_all(pipe, [1.0, 1.0, 1.0, 2.0, 30.0]))
            await asyncio.sleep(3.0)
            first, second = pipe.stats().stages
            assert (first.running, first.depth, second.running, second.depth) == (1, 0, 1, 2)
            assert pipe.stats().in_flight == 5
            await submitted
        first, second = pipe.stats().stages
        assert (first.wait.count, first.wait.total, first.run.count) == (5, 0.0, 5)
        assert (first.run.total, first.run.max, first.run.mean) == (35.0, 30.0, 7.0)
        assert second.batch_sizes == {2: 2, 1: 1}
        assert second.wait.total == 4.0 + 3.0 + 1.0  # since 1, since 2, and one alone
        assert second.run.total == 12.0
        assert pipe.stats().latency.max == 35.0
        check_metrics(pipe.stats().metrics())

    run_virtually(main())


def check_metrics(text: str) -> None:
    lines = text.splitlines()
    sample = re.compile(r'[a-z_]+(\{[a-z]+="[^"\\]*(\\"[^"\\]*)*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')
    assert all(line.startswith("# TYPE ") or sample.fullmatch(line) for line in lines)
    assert 'ember_pipeline_items_total{outcome="completed"} 5' in lines
    assert r'ember_pipeline_stage_batches_total{stage="the \"batch\"",size="2"} 2' in lines
    assert 'ember_pipeline_stage_run_seconds_sum{stage="sleep"} 35' in lines
    assert "ember_pipeline_healthy 1" in lines


def test_a_pipeline_that_never_ran_has_empty_stats() -> None:
    pipe = AsyncPipeline()
    assert check_counts(pipe.stats()).accepted == 0
    assert pipe.healthy
