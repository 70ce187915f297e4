"""Timers around the modules of a model."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ember_ml.nn._hooks import Call, calls_through
from ember_ml.nn.module import Module
from ember_ml.training.profiling.events import Event, Events


@contextlib.contextmanager
def timed_modules(names: Mapping[str, Module], events: Events) -> Iterator[None]:
    """Measure the forward passes of modules in this thread within the block.

    Args:
        names: The modules by name; their order gives the numbers of the layers.
        events: Receives the times.
    """
    timers = ((each, _timer(at, name, events)) for at, (name, each) in enumerate(names.items()))
    with calls_through(timers):
        yield


def _timer(number: int, name: str, events: Events) -> Callable[..., Any]:
    thread = threading.get_ident()

    def run(call: Call, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if threading.get_ident() != thread:
            return call(module, args, kwargs)
        outer, events.layer = events.layer, number
        overhead, start = events.overhead, time.perf_counter()
        try:
            return call(module, args, kwargs)
        finally:
            ended = time.perf_counter()
            events.layer = outer
            if events.is_forward:
                events.modules[number] += ended - start - (events.overhead - overhead)
            phase = "forward" if events.is_forward else "backward"
            events.add(Event(name, "module", phase, number, start, ended - start))

    return run
