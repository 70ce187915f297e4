"""Profiles of any computation: a context manager."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Self

from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.backend import get_backend
from ember_ml.backend.devices import default_device
from ember_ml.backend.interface import MemoryRecorder
from ember_ml.backend.selection import check_name
from ember_ml.nn.module import Module
from ember_ml.training.layer_marks import layers_of
from ember_ml.training.profiling.events import Events
from ember_ml.training.profiling.gather import (
    dispatch_seconds,
    rows_by_group,
    rows_by_module,
    rows_by_op,
)
from ember_ml.training.profiling.machine import dispatch_costs, matrix_rate
from ember_ml.training.profiling.memory import peak_of
from ember_ml.training.profiling.modules import timed_modules
from ember_ml.training.profiling.operations import Operations
from ember_ml.training.profiling.result import Profile
from ember_ml.training.profiling.tables import Meter, timed


class Profiler:
    """Context manager that measures the calls of this thread; see `profile`.

    Each `with` block starts a new measurement.

    Args:
        model: The model whose modules are measured. Default: times by op only.
        backend: Backend whose calls are measured. Default: the model's, or the active one.
        memory: Whether to record the peak of the memory.

    Attributes:
        events: The measured calls.
        result: The profile, after the block.
    """

    def __init__(
        self, model: Module | None = None, *, backend: str | None = None, memory: bool = False
    ) -> None:
        if model is not None and not isinstance(model, Module):
            raise ArgumentTypeError(f"profile: the model must be a Module, not {model!r:.60}")
        parameters = [] if model is None else model.parameters()
        own = parameters[0].backend if parameters else get_backend()
        self.backend = own if backend is None else check_name(backend)
        here = [each for each in parameters if each.backend == self.backend]
        self._device = here[0].device if here else default_device(self.backend)
        self._dtype = next((each.dtype.name for each in here if each.dtype.kind == "float"), None)
        self.modules = {} if model is None else dict(model.named_modules())
        self._layers = [] if model is None else list(layers_of(model))
        self.title = "Computation" if model is None else type(model).__name__
        self.events = self._no_events()
        self.operations = Operations(self.backend)
        self._memory = memory
        self._result: Profile | None = None
        self._open = contextlib.ExitStack()
        self._recorder: MemoryRecorder | None = None

    @property
    def result(self) -> Profile:
        """The profile."""
        if self._result is None:
            raise ArgumentError(
                "profile: the result is available after the with block, unless the block raises an "
                "error"
            )
        return self._result

    def __enter__(self) -> Self:
        events, recorder = self._no_events(), None
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._measuring(events))
            if self._memory:
                recorder = stack.enter_context(runtime.load(self.backend).memory.record())
            self._open = stack.pop_all()
        self.events, self._recorder, self._result = events, recorder, None
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        seconds = time.perf_counter() - self._start
        self._open.close()
        if exception and exception[0] is not None:
            return
        changes = [] if self._recorder is None else self._recorder.changes
        memory = {"peak": peak_of(changes)} if changes else {}
        self._result = self.summarize(seconds, memory=memory)

    def restart(self) -> None:
        """Forget the measured calls, but not their numbers of operations."""
        self.events = self._no_events()

    def _no_events(self) -> Events:
        return Events(dispatches_backward=runtime.load(self.backend).profiling.observer is None)

    def measuring(self) -> AbstractContextManager[None]:
        """Return a context in which calls are measured; those of several blocks add up."""
        return self._measuring(self.events)

    @contextlib.contextmanager
    def _measuring(self, events: Events) -> Iterator[None]:
        meter = Meter(self.backend, events, self.operations)
        with timed(meter), timed_modules(self.modules, events):
            yield

    def summarize(
        self,
        seconds: float,
        *,
        steps: int = 1,
        plain: float | None = None,
        compiled: bool = False,
        compiles_later: bool = False,
        between: float | None = None,
        memory: dict[str, int] | None = None,
        layer_memory: dict[str, int] | None = None,
        dtype: str | None = None,
    ) -> Profile:
        """Return the profile of the measured calls.

        Args:
            seconds: Time of all measured steps together, with the time of the measurement.
            steps: Number of steps.
            plain: Shortest time of a step that was not measured.
            compiled: Whether such steps were compiled.
            compiles_later: Whether later steps are compiled.
            between: Mean time between steps.
            memory: Bytes by name.
            layer_memory: Bytes by layer.
            dtype: Dtype of the matrix product to compare with. Default: the model's.
        """
        events = self.events
        ops = rows_by_op(events, steps)
        recorded = events.dispatches_backward and events.native("backward") > 0
        costs = dispatch_costs(self.backend, recorded=recorded)
        return Profile(
            title=self.title,
            backend=self.backend,
            device=self._device,
            steps=steps,
            seconds=max(0.0, seconds - events.overhead) / steps,
            overhead=events.overhead / steps,
            plain=plain,
            compiled=compiled,
            compiles_later=compiles_later,
            between=between,
            parts={name: value / steps for name, value in events.parts.items()},
            dispatch=dispatch_seconds(events, costs, steps),
            ops=ops,
            groups=rows_by_group(ops),
            modules=rows_by_module(events, self.modules, steps),
            peak=matrix_rate(self.backend, dtype or self._dtype or "float32", self._device),
            memory=memory or {},
            layer_memory=layer_memory or {},
            method=runtime.load(self.backend).profiling.METHOD,
            replayed=events.replays,
            timeline=events.timeline,
            names=list(self.modules),
            layers=self._layers,
            dropped=events.dropped,
        )


def profile(
    model: Module | None = None, *, backend: str | None = None, memory: bool = False
) -> Profiler:
    """Return a context manager that measures all calls of this thread.

    Times are measured by op, group of ops and module, in the forward and the backward pass.
    Compiled functions are no calls of ops: profile them uncompiled. The first calls of a process
    are slower than later ones; run the computation once before.

    Args:
        model: The model whose modules are listed. Default: times by op only.
        backend: Backend whose calls are measured. Default: the model's, or the active one.
        memory: Whether to record the peak of the memory, which makes NumPy slower. Default: False.

    Example:
        >>> from ember_ml.training.profiling import profile
        >>> model = nn.models.LanguageModel("attention swiglu", 16, 32)
        >>> with profile(model) as p:
        ...     logits = model(ops.zeros((2, 8), dtype="int64"))
        >>> [row.name for row in p.result.modules][:2]
        ['(model)', 'embedding']
    """
    return Profiler(model, backend=backend, memory=memory)
