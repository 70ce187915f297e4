"""Asynchronous pipelines under random faults, cancellations, deadlines and load."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
import subprocess
import sys
import textwrap
import threading
import tracemalloc
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ember_ml.nn.pipeline import AsyncPipeline, Batch, DeadlineExceeded, Failure, PipelineClosed
from ember_ml.nn.pipeline.asynchronous import ItemSkipped, Overloaded, StageTimeout
from tests.async_pipelines import check_counts, passes, until, wait_for_no_threads
from tests.robustness.scale import amount
from tests.virtual_time import run_virtually

EXAMPLES = settings(max_examples=amount(150, 20_000), deadline=None)


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    yield
    assert wait_for_no_threads() == []


class Fault(ValueError):  # noqa: N818
    """Error of a stage that is part of the plan."""


class Plan(NamedTuple):
    """What happens to an item in each stage, and what its client does."""

    delays: tuple[float, ...]
    faults: tuple[bool, ...]
    cancel_after: float | None
    timeout: float | None


class StagePlan(NamedTuple):
    """Options of a stage."""

    concurrency: int
    batch: int | None
    timeout: float | None


STAGES = 3
seconds = st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.0, 20.0])
plans = st.builds(
    Plan,
    st.tuples(*[seconds] * STAGES),
    st.tuples(*[st.sampled_from([False, False, False, True])] * STAGES),
    st.none() | seconds,
    st.none() | st.sampled_from([0.0, 0.5, 2.0, 10.0]),
)
stage_plans = st.builds(
    StagePlan,
    st.integers(1, 3),
    st.none() | st.integers(1, 4),
    st.none() | st.sampled_from([1.0, 5.0]),
)


def stage_of(number: int, plan: StagePlan, items: list[Plan]) -> Any:
    """Return the coroutine function of a stage: it waits, fails or appends its number."""

    async def one(path: tuple[int, ...]) -> tuple[int, ...]:
        item = items[path[0]]
        await asyncio.sleep(item.delays[number])
        if item.faults[number]:
            raise Fault(f"item {path[0]} in stage {number}")
        return (*path, number)

    async def several(paths: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [await one(path) for path in paths]

    return one if plan.batch is None else several


def build(
    stages: list[StagePlan], items: list[Plan], *, policy: Any = "raise", **options: Any
) -> AsyncPipeline:
    pipe = AsyncPipeline(**options)
    for number, plan in enumerate(stages):
        pipe.add_stage(
            stage_of(number, plan, items),
            name=f"stage {number}",
            concurrency=plan.concurrency,
            timeout=plan.timeout,
            batch=None if plan.batch is None else Batch(plan.batch, 0.7),
            pure=True,
            on_error=policy,
        )
    return pipe


def reference(index: int, stages: list[StagePlan], item: Plan) -> Any:
    """Return the result of an item in a plain sequential pipeline, or the text of its error."""
    for number in range(len(stages)):
        if item.faults[number]:
            return f"item {index} in stage {number}"
    return (index, *range(len(stages)))


def check_result(index: int, result: Any, stages: list[StagePlan], item: Plan) -> None:
    """Assert that a result is that of the reference, or of something the plan asks for."""
    wanted = reference(index, stages, item)
    if isinstance(result, Fault):
        assert str(result) == wanted
    elif isinstance(result, DeadlineExceeded):
        assert item.timeout is not None
    elif isinstance(result, asyncio.CancelledError):
        assert item.cancel_after is not None
    elif isinstance(result, StageTimeout):
        assert any(plan.timeout is not None for plan in stages)
    else:
        assert result == wanted
        assert type(result) is tuple


@EXAMPLES
@given(
    items=st.lists(plans, max_size=12),
    stages=st.lists(stage_plans, min_size=1, max_size=STAGES),
    buffer=st.integers(1, 6),
    overload=st.sampled_from(["wait", "reject"]),
    close_at=st.none() | st.tuples(seconds, st.booleans(), st.sampled_from([0.0, 5.0, 60.0])),
)
def test_every_submitted_item_has_the_result_of_the_reference_or_a_planned_end(
    items: list[Plan], stages: list[StagePlan], buffer: int, overload: Any, close_at: Any
) -> None:
    pipe = build(stages, items, buffer=buffer, overload=overload)

    async def client(index: int, item: Plan) -> Any:
        return await pipe.submit((index,), timeout=item.timeout)

    async def observe() -> None:
        while True:
            stats = check_counts(pipe.stats(), closed=False)
            assert stats.in_flight <= buffer
            assert sum(stage.depth for stage in stats.stages) <= buffer
            await asyncio.sleep(0.3)

    async def main() -> list[Any]:
        await pipe.start()
        loop = asyncio.get_running_loop()
        observer = loop.create_task(observe())
        tasks = [loop.create_task(client(index, item)) for index, item in enumerate(items)]
        for task, item in zip(tasks, items, strict=True):
            if item.cancel_after is not None:
                loop.call_later(item.cancel_after, task.cancel)
        if close_at is not None:
            await asyncio.sleep(close_at[0])
            await pipe.aclose(drain=close_at[1], timeout=close_at[2])
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert not observer.done()
        observer.cancel()
        await pipe.aclose()
        return results

    results = run_virtually(main())
    stats = check_counts(pipe.stats())
    assert stats.abandoned == 0
    for index, result in enumerate(results):
        if isinstance(result, PipelineClosed):
            assert close_at is not None
        elif isinstance(result, Overloaded):
            assert overload == "reject"
        else:
            check_result(index, result, stages, items[index])
    if close_at is None and all(item.cancel_after is None for item in items):
        number = Counter(map(type, results))
        assert stats.accepted == len(items) - stats.rejected
        assert stats.completed == number[tuple]
        assert stats.failed == number[Fault] + number[StageTimeout]
        assert stats.expired + stats.rejected == number[DeadlineExceeded] + number[Overloaded]


@EXAMPLES
@given(
    items=st.lists(plans, max_size=12),
    stages=st.lists(stage_plans, min_size=1, max_size=STAGES),
    buffer=st.integers(1, 6),
    ordered=st.booleans(),
    policy=st.sampled_from(["raise", "yield", "skip"]),
    stop=st.integers(0, 12),
    think=seconds,
)
def test_a_map_that_is_left_and_resumed_delivers_each_item_of_the_reference_once(
    items: list[Plan],
    stages: list[StagePlan],
    buffer: int,
    ordered: bool,
    policy: Any,
    stop: int,
    think: float,
) -> None:
    stages = [stage._replace(timeout=None) for stage in stages]

    async def part(state: Any, number: int) -> tuple[list[Any], Any, bool]:
        pipe = build(stages, items, policy=policy, buffer=buffer, ordered=ordered)
        received: list[Any] = []
        async with pipe:
            if state is not None:
                pipe.load_state_dict(state)
            results = pipe.map([(index,) for index in range(len(items))])
            try:
                while len(received) < number:
                    received.append(await anext(results))
                    await asyncio.sleep(think)
                    check_counts(pipe.stats(), closed=False)
                ended = False
            except (StopAsyncIteration, Fault) as error:
                ended = True
                if isinstance(error, Fault):
                    assert policy == "raise"
                    received.append(error)
            await results.aclose()
            await passes()
            assert pipe.stats().in_flight == 0
            state = pipe.state_dict()
        assert check_counts(pipe.stats()).abandoned == 0
        return received, state, ended

    before, state, ended = run_virtually(part(None, stop))
    after = [] if ended else run_virtually(part(state, 100))[0]
    wanted = [reference(index, stages, item) for index, item in enumerate(items)]
    results = [plain(result) for result in before + after]
    if policy == "skip":
        wanted = [each for each in wanted if type(each) is tuple]
    if policy != "raise" or all(type(each) is tuple for each in wanted):
        assert (results if ordered else sorted(results, key=str)) == (
            wanted if ordered else sorted(wanted, key=str)
        )
    elif ordered:  # up to the first fault
        first = next(index for index, each in enumerate(wanted) if type(each) is str)
        assert results == wanted[: first + 1]
    else:
        assert len(set(results)) == len(results)
        assert set(results) <= set(wanted)


def plain(result: Any) -> Any:
    """Return a value, or the text of an error."""
    error = result.error if isinstance(result, Failure) else result
    return str(error) if isinstance(error, Fault) else result


@pytest.mark.parametrize("seed", range(amount(6, 200)))
def test_threads_under_random_faults_cancellations_and_deadlines(seed: int) -> None:
    rng = random.Random(seed)
    release = threading.Event()
    fates = {
        index: rng.choices(["fine", "fault", "hang", "cancel", "deadline"], [12, 2, 1, 2, 2])[0]
        for index in range(120)
    }
    pauses = [rng.choice([0.0, 0.0, 0.0005, 0.002]) for _ in fates]

    def work(index: int) -> int:
        if fates[index] == "hang":
            release.wait(60)
        threading.Event().wait(pauses[index])
        if fates[index] == "fault":
            raise Fault(f"item {index}")
        return index

    def square(indices: list[int]) -> list[int]:
        return [index * index for index in indices]

    pipe = AsyncPipeline(buffer=16)
    pipe.add_stage(work, concurrency=24, timeout=0.5)
    pipe.add_stage(square, batch=Batch(8, 0.002, key=lambda index: index % 3), pure=True)

    async def client(index: int) -> Any:
        timeout = 0.001 if fates[index] == "deadline" else None
        task = asyncio.ensure_future(pipe.submit(index, timeout=timeout))
        if fates[index] == "cancel":
            asyncio.get_running_loop().call_later(rng.uniform(0, 0.01), task.cancel)
        return (await asyncio.gather(task, return_exceptions=True))[0]

    async def main() -> list[Any]:
        async with pipe:
            results = await asyncio.gather(*map(client, fates))
            check_counts(pipe.stats(), closed=False)
            release.set()
        return results

    results = asyncio.run(main())
    allowed: dict[str, Any] = {
        "fault": Fault,
        "hang": StageTimeout,
        "cancel": (asyncio.CancelledError, int),
        "deadline": (DeadlineExceeded, int),
        "fine": int,
    }
    for index, result in enumerate(results):
        assert isinstance(result, allowed[fates[index]])
        if isinstance(result, int):
            assert result == index * index
    check_counts(pipe.stats())
    assert pipe.healthy


RATE = 20
"""Items per second that the stage of the overload tests completes."""
PAYLOAD = 100_000
"""Bytes of an item."""
CLIENTS = {"reject": 60 * 2 * RATE, "wait": 32}
"""Clients that arrive at twice the rate, or that submit again and again: twice the buffer."""


@pytest.mark.parametrize("overload", ["reject", "wait"])
def test_twice_the_load_for_a_minute_with_bounded_memory(overload: Any) -> None:
    """A virtual minute; `benchmarks/async_pipeline.py` takes a real one."""

    async def stage(item: bytearray) -> int:
        await asyncio.sleep(1 / RATE)
        return len(item)

    pipe = AsyncPipeline(buffer=16, overload=overload).add_stage(stage)
    ends: Counter[type] = Counter()

    async def submit() -> None:
        try:
            assert await pipe.submit(bytearray(PAYLOAD)) == PAYLOAD
            ends[int] += 1
        except Overloaded as error:
            ends[type(error)] += 1
        assert pipe.stats().in_flight <= 16

    async def one_client(number: int) -> None:
        if overload == "reject":
            await asyncio.sleep(number * 0.5 / RATE)
            await submit()
        while overload == "wait" and asyncio.get_running_loop().time() < 60.0:
            await submit()

    async def main() -> None:
        async with pipe:
            await asyncio.gather(*map(one_client, range(CLIENTS[overload])))

    tracemalloc.start()
    try:
        run_virtually(main())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    stats = check_counts(pipe.stats())
    assert sum(ends.values()) == stats.accepted + stats.rejected
    assert stats.completed == ends[int]
    assert 59 * RATE <= stats.completed <= 63 * RATE  # at the rate of the stage
    assert peak < 10_000_000 + 32 * PAYLOAD  # half of the load is 120 MB


class Payload:
    """Item that can be observed by a weak reference."""


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled", "expired"])
def test_nothing_refers_to_an_item_after_its_outcome(end: str) -> None:
    alive: weakref.WeakSet[Payload] = weakref.WeakSet()
    release = threading.Event()

    def stage(item: Payload) -> None:
        if end == "failed":
            raise Fault("no")
        if end != "completed":
            release.wait(60)

    async def main() -> None:
        async with AsyncPipeline(buffer=4).add_stage(stage, concurrency=3) as pipe:
            for _ in range(3):
                item = Payload()
                alive.add(item)
                task = asyncio.ensure_future(
                    pipe.submit(item, timeout=0.01 if end == "expired" else None)
                )
                del item
                await passes()
                if end == "cancelled":
                    task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                del task
            release.set()
            await until(lambda: pipe.stats().stages[0].running == 0)
            await passes()
            await until(lambda: not alive)
            assert getattr(pipe.stats(), end) == 3

    gc.collect()
    gc.disable()  # no cycle keeps an item alive
    try:
        asyncio.run(main())
    finally:
        gc.enable()


def test_a_loop_that_ends_in_flight() -> None:
    started, release = threading.Event(), threading.Event()

    def stage(item: int) -> int:
        started.set()
        release.wait(60)
        return item

    pipe = AsyncPipeline(buffer=4).add_stage(stage)

    async def main() -> list[asyncio.Task[Any]]:
        await pipe.start()
        tasks = [asyncio.ensure_future(pipe.submit(item)) for item in range(3)]
        tasks.append(asyncio.ensure_future(anext(pipe.map(range(9)))))
        await until(started.is_set)
        return tasks  # asyncio.run cancels what still runs

    tasks = asyncio.run(main())
    assert all(task.cancelled() for task in tasks)
    stats = check_counts(pipe.stats())
    assert (stats.accepted, stats.cancelled, stats.abandoned) == (4, 4, 1)
    release.set()
    assert wait_for_no_threads() == []
    assert pipe.run([1, 2]) == [1, 2]


def test_a_loop_that_is_closed_in_flight() -> None:
    started, release = threading.Event(), threading.Event()

    def stage(item: int) -> int:
        started.set()
        release.wait(60)
        return item

    pipe = AsyncPipeline(buffer=4).add_stage(stage, concurrency=2)
    loop = asyncio.new_event_loop()

    async def main() -> Any:
        await pipe.start()
        tasks = [asyncio.ensure_future(pipe.submit(item)) for item in range(6)]
        await until(started.is_set)
        return tasks

    tasks = loop.run_until_complete(main())
    loop.close()
    stats = check_counts(pipe.stats())
    assert (stats.accepted, stats.cancelled) == (4, 4)
    release.set()
    assert wait_for_no_threads() == []
    asyncio.run(pipe.aclose())
    assert asyncio.run(use(pipe)) == 7
    for task in tasks:
        task._log_destroy_pending = False  # as their loop, they are not finished


async def use(pipe: AsyncPipeline) -> Any:
    async with pipe:
        return await pipe.submit(7)


SCRIPT = """
    import asyncio, signal, sys, threading, time
    from ember_ml.nn.pipeline import AsyncPipeline, Batch

    signal.signal(signal.SIGINT, signal.default_int_handler)
    mode = sys.argv[1]
    ready = False

    def work(item):
        global ready
        if item > 20 and not ready:
            ready = True
            print("ready", flush=True)
        time.sleep(0.002)
        return item

    pipe = AsyncPipeline(buffer=8).add_stage(work, concurrency=3)
    pipe.add_stage(lambda items: items, name="batch", batch=Batch(4))

    def endless():
        number = 0
        while True:
            yield number
            number += 1

    async def endless_async():
        for number in endless():
            yield number

    async def consume(source):
        async with pipe:
            async for _ in pipe.map(source):
                pass

    try:
        if mode == "run":
            pipe.run(endless())
        elif mode == "run in a loop":
            async def main():
                pipe.run(endless())
            asyncio.run(main())
        elif mode == "map":
            asyncio.run(consume(endless()))
        else:
            asyncio.run(consume(endless_async()))
    except KeyboardInterrupt:
        stats = pipe.stats()
        ends = stats.completed + stats.failed + stats.cancelled + stats.expired + stats.skipped
        print("balance", stats.accepted - ends, stats.in_flight)
        print("threads", [each.name for each in threading.enumerate()])
        raise
"""


@pytest.mark.parametrize("mode", ["run", "run in a loop", "map", "asynchronous source"])
def test_ctrl_c_while_busy(mode: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), mode]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT, errors
    assert output.splitlines() == ["balance 0 0", "threads ['MainThread']"]
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert "Task" not in errors.split("Traceback")[0]  # no complaint of a destroyed task


STUCK = """
    import signal, threading, time
    from ember_ml.nn.pipeline import AsyncPipeline

    signal.signal(signal.SIGINT, signal.default_int_handler)

    def hang(item):
        print("ready", flush=True)
        time.sleep(3600)

    pipe = AsyncPipeline().add_stage(hang)
    try:
        pipe.run([1, 2], close_timeout=0.2)
    except KeyboardInterrupt:
        stats = pipe.stats()
        print(stats.accepted, stats.cancelled, stats.abandoned, stats.healthy)
        raise
"""


def test_ctrl_c_while_a_stage_hangs_for_ever() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(STUCK)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)  # the hanging thread is a daemon
    assert process.returncode == -signal.SIGINT
    assert output == "2 2 1 False\n"


def test_an_item_that_was_skipped_names_its_error() -> None:
    async def main() -> None:
        async def stage(item: int) -> int:
            raise Fault("no")

        async with AsyncPipeline().add_stage(stage, name="f", on_error="skip") as pipe:
            with pytest.raises(ItemSkipped, match="item 0 failed in stage 'f': Fault"):
                await pipe.submit(1)

    run_virtually(main())
