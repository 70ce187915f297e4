"""Asynchronous pipelines: counts under faults, twice the load for a minute, batches against none.

The faults are items that raise, calls that hang, clients that cancel and deadlines. The pipeline is
used by clients (`submit`) and by a slow consumer (`map`) at the same time. The overload offers
twice the items that the stage can process. Memory is the growth of the process in the second half.
The throughput is that of 64 clients of a model whose call costs 1 ms, whatever its batch size.

    python benchmarks/async_pipeline.py [seconds]
"""

from __future__ import annotations

import asyncio
import random
import resource
import sys
import threading
import time
from collections import Counter
from typing import Any

from ember_ml.nn.pipeline import AsyncPipeline, Batch, DeadlineExceeded, Failure, Overloaded
from ember_ml.nn.pipeline.asynchronous import ItemSkipped, Stats

PAYLOAD = 20_000
"""Bytes of an item."""
CALL = 0.001
"""Seconds of a call of the model."""


def memory() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(title: str, stats: Stats) -> None:
    """Print the counts, and whether each accepted item has exactly one outcome."""
    outcomes = {name: getattr(stats, name) for name in OUTCOMES}
    balance = stats.accepted == sum(outcomes.values()) and not stats.in_flight
    text = ", ".join(f"{number} {name}" for name, number in outcomes.items())
    print(f"{title}: {stats.accepted} accepted = {text}: {'holds' if balance else 'DOES NOT HOLD'}")
    print(f"  {stats.rejected} rejected, {stats.abandoned} abandoned, healthy: {stats.healthy}")


OUTCOMES = ("completed", "failed", "cancelled", "expired", "skipped")
EXPECTED = (ItemSkipped, Overloaded, DeadlineExceeded)


async def faults(seconds: float) -> Stats:
    """Run clients and a slow consumer on a pipeline whose calls fail and hang."""
    rng, end = random.Random(0), time.monotonic() + seconds
    release = threading.Event()

    def work(item: tuple[int, bytearray]) -> tuple[int, bytearray]:
        time.sleep(rng.choice([0.0, 0.001, 0.003]))
        draw = rng.random()
        if draw < 0.02:
            raise ValueError("planned")
        if draw < 0.022:
            release.wait(1.0)  # longer than the timeout
        return item

    def model(items: list[tuple[int, bytearray]]) -> list[int]:
        time.sleep(CALL)
        if any(number % 97 == 0 for number, _ in items):
            raise ValueError("planned")
        return [number for number, _ in items]

    async def client() -> None:
        while time.monotonic() < end:
            item = (rng.randrange(10**6), bytearray(PAYLOAD))
            task = asyncio.ensure_future(
                pipe.submit(item, timeout=rng.choice([None, None, 0.01, 1.0]))
            )
            if rng.random() < 0.1:
                asyncio.get_running_loop().call_later(rng.random() * 0.02, task.cancel)
            (result,) = await asyncio.gather(task, return_exceptions=True)
            expected = isinstance(result, (Failure, asyncio.CancelledError, *EXPECTED))
            if not expected and result != item[0]:
                raise AssertionError(repr(result))

    async def consumer() -> None:
        while time.monotonic() < end:
            async for _ in pipe.map(((n, bytearray(PAYLOAD)) for n in range(500)), timeout=5.0):
                await asyncio.sleep(0.005)
                if rng.random() < 0.005 or time.monotonic() > end:
                    break

    pipe = AsyncPipeline(buffer=32, ordered=False)
    pipe.add_stage(work, name="work", concurrency=8, timeout=0.3, on_error="skip")
    pipe.add_stage(
        model, name="model", batch=Batch(8, 0.002, key=lambda item: item[0] % 2),
        pure=True, on_error="yield",
    )  # fmt: skip
    async with pipe:
        await asyncio.gather(consumer(), *(client() for _ in range(48)))
        release.set()
    return pipe.stats()


async def overload(seconds: float, policy: Any) -> Stats:
    """Offer twice the items that a stage can process; print the growth of memory."""

    def work(item: bytearray) -> int:
        time.sleep(0.005)
        return len(item)

    async def client() -> None:
        try:
            await pipe.submit(bytearray(PAYLOAD), timeout=0.5)
        except (Overloaded, DeadlineExceeded) as error:
            ends[type(error).__name__] += 1

    pipe = AsyncPipeline(buffer=32, overload=policy).add_stage(work, concurrency=1)
    ends: Counter[str] = Counter()
    clients: set[asyncio.Task[None]] = set()
    half, largest = 0.0, 0
    async with pipe:
        start = time.monotonic()
        offered = 0
        while (now := time.monotonic() - start) < seconds:
            while offered < now * 2 / 0.005:
                task = asyncio.ensure_future(client())
                clients.add(task)
                task.add_done_callback(clients.discard)
                offered += 1
            if now > seconds / 2 and not half:
                half = memory()
            largest = max(largest, pipe.stats().in_flight)
            await asyncio.sleep(0.002)
        await asyncio.gather(*clients)
    rate = pipe.stats().completed / seconds
    print(
        f"  offered {offered / seconds:.0f}/s, completed {rate:.0f}/s, at most {largest} in flight"
    )
    print(f"  refused {dict(ends)}, memory +{memory() - half:.1f} MB in the second half")
    return pipe.stats()


async def throughput(batch: Batch | None, seconds: float) -> float:
    """Return the results per second of 64 clients."""

    def single(item: int) -> int:
        time.sleep(CALL)
        return item

    def several(items: list[int]) -> list[int]:
        time.sleep(CALL)
        return items

    async def client(number: int) -> None:
        while time.monotonic() < end:
            await pipe.submit(number)

    pipe = AsyncPipeline(buffer=128)
    pipe.add_stage(single if batch is None else several, batch=batch)
    async with pipe:
        end = time.monotonic() + seconds
        await asyncio.gather(*map(client, range(64)))
    return pipe.stats().completed / seconds


def main(seconds: float) -> None:
    """Print all measurements.

    Args:
        seconds: Duration of the faults and of each overload.
    """
    report(f"faults for {seconds:.0f} s", asyncio.run(faults(seconds)))
    for policy in ("reject", "wait"):
        stats = asyncio.run(overload(seconds, policy))
        report(f"twice the load for {seconds:.0f} s, overload={policy!r}", stats)
    unbatched = asyncio.run(throughput(None, 3.0))
    print(f"64 clients, 1 ms a call: {unbatched:.0f}/s unbatched")
    for wait in (0.0, 0.002):
        batched = asyncio.run(throughput(Batch(32, wait), 3.0))
        print(f"  batches of 32, max_wait={wait}: {batched:.0f}/s ({batched / unbatched:.1f}x)")
    threads = [each.name for each in threading.enumerate()]
    print(f"threads left: {threads[1:] or 'none'}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
