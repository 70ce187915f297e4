"""Timers around the modules of a model."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ember_ml.nn._hooks import Observer, observing
from ember_ml.nn.module import Module
from ember_ml.training.profiling.events import Event, Events


@contextlib.contextmanager
def timed_modules(names: Mapping[str, Module], events: Events) -> Iterator[None]:
    """Measure the forward passes of modules in this thread within the block.

    Args:
        names: The modules by name; their order gives the numbers of the layers.
        events: Receives the times.
    """
    timers = (_timer(number, name, events) for number, name in enumerate(names))
    with observing(zip(names.values(), timers, strict=True)):
        yield


def _timer(number: int, name: str, events: Events) -> Observer:
    thread = threading.get_ident()

    def observe(module: Module, run: Callable[[], Any]) -> Any:
        if threading.get_ident() != thread:
            return run()
        outer, events.layer = events.layer, number
        overhead, start = events.overhead, time.perf_counter()
        try:
            return run()
        finally:
            ended = time.perf_counter()
            events.layer = outer
            if events.is_forward:
                events.modules[number] += ended - start - (events.overhead - overhead)
            phase = "forward" if events.is_forward else "backward"
            events.add(Event(name, "module", phase, number, start, ended - start))

    return observe
