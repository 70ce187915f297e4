"""What the tests of asynchronous pipelines share."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from ember_ml.nn.pipeline.asynchronous import AsyncPipeline, Stats

PREFIX = "ember-ml pipeline"


def pipeline_threads() -> list[threading.Thread]:
    """Return the live threads of asynchronous pipelines."""
    return [each for each in threading.enumerate() if each.name.startswith(PREFIX)]


def wait_for_no_threads(seconds: float = 30.0) -> list[threading.Thread]:
    """Return the threads of pipelines that are still alive after some time."""
    end = time.monotonic() + seconds
    while (threads := pipeline_threads()) and time.monotonic() < end:
        time.sleep(0.005)
    return threads


def check_counts(stats: Stats, *, closed: bool = True) -> Stats:
    """Assert that every accepted item has exactly one outcome; return the counts."""
    outcomes = stats.completed + stats.failed + stats.cancelled + stats.expired + stats.skipped
    assert stats.accepted == outcomes + stats.in_flight
    if closed:
        assert stats.in_flight == 0
        assert all(stage.depth == 0 for stage in stats.stages)
    return stats


async def collect(results: Any) -> list[Any]:
    """Return the values of an asynchronous iterable as a list."""
    return [each async for each in results]


async def submit_all(pipe: AsyncPipeline, items: Iterable[Any], **options: Any) -> list[Any]:
    """Return the result, or the exception, of each submitted item."""
    tasks = [pipe.submit(item, **options) for item in items]
    return await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


async def passes(number: int = 10) -> None:
    """Let the event loop run its ready callbacks some times."""
    for _ in range(number):
        await asyncio.sleep(0)


async def after(seconds: float, awaitable: Awaitable[Any]) -> Any:
    """Wait, then await."""
    await asyncio.sleep(seconds)
    return await awaitable
