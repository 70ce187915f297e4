"""Timers around the modules of a model."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ember_ml.nn._hooks import drop_unused, hooks_of
from ember_ml.nn.module import Module
from ember_ml.training.profiling.events import Event, Events


@contextlib.contextmanager
def timed_modules(names: Mapping[str, Module], events: Events) -> Iterator[None]:
    """Measure the forward passes of modules in this thread within the block.

    Args:
        names: The modules by name; their order gives the numbers of the layers.
        events: Receives the times.
    """
    before = {}
    for number, (name, module) in enumerate(names.items()):
        hooks = hooks_of(module)
        before[name] = hooks.around
        hooks.around = _around(number, name, events, hooks.around)
    try:
        yield
    finally:
        for name, module in names.items():
            hooks_of(module).around = before[name]
            drop_unused(module)


def _around(
    number: int, name: str, events: Events, inner: Callable[..., Any] | None
) -> Callable[..., Any]:
    thread = threading.get_ident()

    def run(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        call = hooks_of(module).run_inner if inner is None else inner
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
