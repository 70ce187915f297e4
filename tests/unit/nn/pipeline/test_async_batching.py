"""Batches of asynchronous pipelines, on a virtual clock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ember_ml.nn.pipeline import AsyncPipeline, Batch, PipelineClosed
from ember_ml.nn.pipeline.asynchronous import StageError
from tests.async_pipelines import after, check_counts, collect, submit_all
from tests.virtual_time import run_virtually


class Calls:
    """Batched stage that squares numbers and records the time and the items of each call."""

    def __init__(self, seconds: float = 0.0, bad: tuple[Any, ...] = ()) -> None:
        self.seconds = seconds
        self.bad = bad
        self.calls: list[tuple[float, list[Any]]] = []

    async def __call__(self, items: list[Any]) -> list[Any]:
        self.calls.append((asyncio.get_running_loop().time(), list(items)))
        await asyncio.sleep(self.seconds)
        if any(item in self.bad for item in items):
            raise ValueError(f"cannot square {items}")
        return [item * item for item in items]

    @property
    def sizes(self) -> list[int]:
        return [len(items) for _, items in self.calls]


def pipeline(calls: Calls, batch: Batch, *, buffer: int = 64, **options: Any) -> AsyncPipeline:
    return AsyncPipeline(buffer=buffer).add_stage(calls, name="square", batch=batch, **options)


def run(pipe: AsyncPipeline, body: Any) -> Any:
    """Run a body inside of the pipeline; return its result and check the counts."""

    async def main() -> Any:
        async with pipe:
            result = await body(pipe)
        check_counts(pipe.stats())
        return result

    return run_virtually(main())


def test_a_full_batch_runs_at_once() -> None:
    calls = Calls()
    results = run(pipeline(calls, Batch(4, 10.0)), lambda pipe: submit_all(pipe, range(4)))
    assert results == [0, 1, 4, 9]
    assert calls.calls == [(0.0, [0, 1, 2, 3])]


def test_an_incomplete_batch_runs_when_its_first_item_has_waited() -> None:
    calls = Calls()

    async def body(pipe: AsyncPipeline) -> None:
        await asyncio.gather(pipe.submit(1), after(3.0, pipe.submit(2)))

    run(pipeline(calls, Batch(4, 5.0)), body)
    assert calls.calls == [(5.0, [1, 2])]  # not at 8: the second item starts no timer


def test_the_wait_counts_while_a_batch_is_running() -> None:
    calls = Calls(seconds=10.0)

    async def body(pipe: AsyncPipeline) -> None:
        await asyncio.gather(
            submit_all(pipe, [1, 2, 3]), after(1.0, pipe.submit(4)), after(6.0, pipe.submit(5))
        )

    run(pipeline(calls, Batch(3, 3.0)), body)
    # Item 4 has waited since 1, so the batch is due when the stage is free; item 5 still joins it.
    assert calls.calls == [(0.0, [1, 2, 3]), (10.0, [4, 5])]


def test_the_end_of_a_batch_does_not_start_the_timer_again() -> None:
    calls = Calls(seconds=2.0)

    async def body(pipe: AsyncPipeline) -> None:
        await asyncio.gather(submit_all(pipe, [1, 2, 3]), after(1.0, pipe.submit(4)))

    run(pipeline(calls, Batch(3, 3.0)), body)
    assert calls.calls == [(0.0, [1, 2, 3]), (4.0, [4])]  # 1 + 3, neither 2 nor 2 + 3


def test_without_a_wait_the_items_of_one_pass_of_the_loop_form_a_batch() -> None:
    calls = Calls(seconds=1.0)

    async def body(pipe: AsyncPipeline) -> None:
        await asyncio.gather(submit_all(pipe, range(5)), after(0.5, submit_all(pipe, range(3))))

    run(pipeline(calls, Batch(8, 0.0)), body)
    assert [(at, len(items)) for at, items in calls.calls] == [(0.0, 5), (1.0, 3)]


def test_the_rest_of_a_map_runs_when_nothing_else_can_come() -> None:
    calls = Calls(seconds=1.0)
    results = run(pipeline(calls, Batch(4, 1000.0)), lambda pipe: collect(pipe.map(list(range(6)))))
    assert results == [0, 1, 4, 9, 16, 25]
    assert calls.calls == [(0.0, [0, 1, 2, 3]), (1.0, [4, 5])]


@pytest.mark.parametrize("ordered", [True, False])
def test_a_batch_larger_than_the_buffer_runs_when_the_buffer_is_full(ordered: bool) -> None:
    calls = Calls(seconds=1.0)
    pipe = AsyncPipeline(buffer=3, ordered=ordered)
    pipe.add_stage(calls, batch=Batch(8, 1000.0))
    results = run(pipe, lambda pipe: collect(pipe.map(list(range(7)))))
    assert sorted(results) == [0, 1, 4, 9, 16, 25, 36]
    assert calls.calls[-1][0] < 10  # no batch waited for its timer
    assert max(calls.sizes) == 3


def test_submitted_items_that_fill_the_buffer_run_at_once() -> None:
    calls = Calls()
    run(pipeline(calls, Batch(8, 1000.0), buffer=3), lambda pipe: submit_all(pipe, range(3)))
    assert calls.calls == [(0.0, [0, 1, 2])]


def test_draining_runs_incomplete_batches_at_once() -> None:
    calls = Calls()

    async def body(pipe: AsyncPipeline) -> Any:
        submitted = asyncio.ensure_future(submit_all(pipe, [1, 2]))
        await asyncio.sleep(1.0)
        await pipe.aclose(drain=True, timeout=500.0)
        return await submitted

    assert run(pipeline(calls, Batch(8, 1000.0)), body) == [1, 4]
    assert calls.calls == [(1.0, [1, 2])]


def test_submitted_items_wait_for_others_that_may_come() -> None:
    calls = Calls()
    run(pipeline(calls, Batch(8, 5.0)), lambda pipe: pipe.submit(3))
    assert calls.calls == [(5.0, [3])]


def test_a_batch_has_items_of_one_key() -> None:
    calls = Calls()
    pipe = pipeline(calls, Batch(2, 1.0, key=lambda item: item % 3))
    assert run(pipe, lambda pipe: submit_all(pipe, range(7))) == [i * i for i in range(7)]
    assert [items for _, items in calls.calls] == [[0, 3], [1, 4], [2, 5], [6]]


def test_canceled_items_are_dropped_before_the_batch_runs() -> None:
    calls = Calls()

    async def body(pipe: AsyncPipeline) -> Any:
        tasks = [asyncio.ensure_future(pipe.submit(item)) for item in range(4)]
        await asyncio.sleep(1.0)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    pipe = pipeline(calls, Batch(8, 5.0))
    results = run(pipe, body)
    assert calls.calls == [(5.0, [0, 2, 3])]
    assert [results[i] for i in (0, 2, 3)] == [0, 4, 9]
    assert isinstance(results[1], asyncio.CancelledError)
    assert pipe.stats().cancelled == 1


def test_a_canceled_item_leaves_room_in_its_batch() -> None:
    calls = Calls()

    async def body(pipe: AsyncPipeline) -> None:
        tasks = [asyncio.ensure_future(pipe.submit(item)) for item in range(2)]
        await asyncio.sleep(1.0)
        tasks[0].cancel()
        await asyncio.gather(*tasks, *map(pipe.submit, [5, 6]), return_exceptions=True)

    run(pipeline(calls, Batch(3, 50.0)), body)
    assert calls.calls == [(1.0, [1, 5, 6])]


def test_a_batch_without_items_left_is_not_run() -> None:
    calls = Calls()

    async def body(pipe: AsyncPipeline) -> None:
        tasks = [asyncio.ensure_future(pipe.submit(item)) for item in range(2)]
        await asyncio.sleep(1.0)
        for task in tasks:
            task.cancel()
        await asyncio.sleep(50.0)

    run(pipeline(calls, Batch(8, 5.0)), body)
    assert calls.calls == []


def test_an_item_canceled_while_its_batch_runs_does_not_disturb_the_others() -> None:
    calls = Calls(seconds=5.0)

    async def body(pipe: AsyncPipeline) -> Any:
        tasks = [asyncio.ensure_future(pipe.submit(item)) for item in range(3)]
        await asyncio.sleep(1.0)
        tasks[0].cancel()
        await asyncio.sleep(1.0)
        assert pipe.stats().abandoned == 0  # others wait for the call
        return await asyncio.gather(*tasks[1:])

    pipe = pipeline(calls, Batch(3, 5.0))
    assert run(pipe, body) == [1, 4]
    assert (pipe.stats().completed, pipe.stats().cancelled) == (2, 1)


@pytest.mark.parametrize(
    "key",
    [lambda item: 1 // (item - 2), lambda item: [] if item == 2 else 0],
    ids=["raises", "unhashable"],
)
def test_a_failing_key_fails_only_its_own_item(key: Any) -> None:
    calls = Calls()
    pipe = pipeline(calls, Batch(2, 1.0, key=key))
    results = run(pipe, lambda pipe: submit_all(pipe, range(4)))
    assert [results[i] for i in (0, 1, 3)] == [0, 1, 9]
    assert isinstance(results[2], ZeroDivisionError | TypeError)
    assert "in the batch key of stage 'square', item 2" in results[2].__notes__
    assert (pipe.stats().completed, pipe.stats().failed) == (3, 1)


@pytest.mark.parametrize("pure", [False, True])
def test_a_failing_collate_fails_only_its_own_item(pure: bool) -> None:
    calls = Calls()

    def collate(items: list[int]) -> list[int]:
        if 5 in items:
            raise ValueError("cannot collate 5")
        return items

    pipe = pipeline(calls, Batch(8, 1.0, collate=collate), pure=pure)
    results = run(pipe, lambda pipe: submit_all(pipe, range(8)))
    assert results[:5] + results[6:] == [0, 1, 4, 9, 16, 36, 49]
    assert str(results[5]) == "cannot collate 5"
    assert results[5].__notes__ == ["in stage 'square', item 5"]
    assert sorted(item for _, items in calls.calls for item in items) == [0, 1, 2, 3, 4, 6, 7]


def test_a_failed_pure_batch_is_bisected_so_that_bad_items_fail_alone() -> None:
    calls = Calls(bad=(3, 12))
    pipe = pipeline(calls, Batch(16, 1.0), pure=True)
    results = run(pipe, lambda pipe: submit_all(pipe, range(16)))
    good = [item for item in range(16) if item not in calls.bad]
    assert [results[item] for item in good] == [item * item for item in good]
    for bad in calls.bad:
        assert str(results[bad]) == f"cannot square [{bad}]"
        assert results[bad].__notes__ == [f"in stage 'square', item {bad}"]
    assert len(calls.calls) <= 1 + 2 * 2 * 4  # two halves on each of four levels, two bad items
    assert (pipe.stats().completed, pipe.stats().failed) == (14, 2)


def test_a_failed_batch_of_a_stage_that_is_not_pure_runs_once() -> None:
    calls = Calls(bad=(3,))
    pipe = pipeline(calls, Batch(8, 1.0))
    results = run(pipe, lambda pipe: submit_all(pipe, range(8)))
    assert calls.sizes == [8]
    assert all(isinstance(result, ValueError) for result in results)
    assert results[0].__notes__ == ["in stage 'square', items 0, 1, 2, 3, 4, 5, 6, 7"]


def test_bisecting_leaves_out_items_that_were_canceled_meanwhile() -> None:
    calls = Calls(seconds=2.0, bad=(0,))

    async def body(pipe: AsyncPipeline) -> None:
        tasks = [asyncio.ensure_future(pipe.submit(item)) for item in range(4)]
        await asyncio.sleep(1.0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(pipeline(calls, Batch(4, 1.0), pure=True), body)
    assert [items for _, items in calls.calls] == [[0, 1, 2, 3], [0], [2, 3]]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda items: items[1:], "returned 3 results for a batch of 4 items"),
        (lambda items: 7, "must be a sequence, not 7"),
        (lambda items: dict.fromkeys(range(4)), "must be a sequence, not {0: None"),
        (lambda items: {0, 1, 2, 3}, "must be a sequence, not {0, 1, 2, 3}"),
        (lambda items: "abcd", "must be a sequence, not 'abcd'"),
    ],
)
def test_a_batch_without_a_result_for_each_item_fails(function: Any, message: str) -> None:
    async def stage(items: list[int]) -> Any:
        return function(items)

    pipe = AsyncPipeline().add_stage(stage, batch=Batch(4, 1.0))
    for result in run(pipe, lambda pipe: submit_all(pipe, range(4))):
        assert isinstance(result, StageError)
        assert message in str(result)


def test_closing_without_draining_fails_the_items_of_waiting_batches() -> None:
    calls = Calls()

    async def body(pipe: AsyncPipeline) -> Any:
        submitted = asyncio.ensure_future(submit_all(pipe, [1, 2]))
        await asyncio.sleep(1.0)
        await pipe.aclose(drain=False)
        return await submitted

    results = run(pipeline(calls, Batch(8, 1000.0)), body)
    assert all(isinstance(result, PipelineClosed) for result in results)
    assert calls.calls == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "size must be an integer of at least 1, not 0"),
        ((True,), "size must be an integer"),
        ((2, -1.0), "max_wait must be a finite number"),
        ((2, float("inf")), "max_wait must be a finite number"),
        ((2, 1.0, 5), "key must be a function, not 5"),
    ],
)
def test_arguments_of_a_batch_are_checked(arguments: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Batch(*arguments)
