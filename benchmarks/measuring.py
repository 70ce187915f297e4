"""Time and memory of calls."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import torch

Call = Callable[[], Any]


def best(calls: list[Call], seconds: float) -> list[float]:
    """Return the shortest CPU time of each call in milliseconds, measured in turns.

    Args:
        calls: The calls.
        seconds: Time that the measurement takes, unless three rounds take longer.
    """
    times = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        rounds += 1
        for at, call in enumerate(calls):
            start = time.process_time()
            call()
            times[at] = min(times[at], (time.process_time() - start) * 1e3)
    return times


def peak(call: Call) -> float:
    """Return the peak memory of torch during a call in MB, above that before it."""
    gc.collect()
    activity = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activity, profile_memory=True) as profile:
        call()
    events = profile.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    held = most = 0
    for _, size in changes:
        held += size
        most = max(most, held)
    return most / 2**20
