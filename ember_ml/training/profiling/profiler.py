"""Profiles of any computation: a context manager."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Self

from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.backend import get_backend
from ember_ml.backend.devices import default_device
from ember_ml.backend.interface import MemoryRecorder
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
        self.backend = backend or (parameters[0].backend if parameters else get_backend())
        self.modules = {} if model is None else dict(model.named_modules())
        self._layers = [] if model is None else list(layers_of(model))
        self.title = "Computation" if model is None else type(model).__name__
        self.events = Events()
        module = runtime.load(self.backend)
        self.events.dispatches_backward = module.profiling.observer is None
        self.operations = Operations(self.backend)
        self._memory = memory
        self._result: Profile | None = None
        self._open = contextlib.ExitStack()
        self._recorder: MemoryRecorder | None = None

    @property
    def result(self) -> Profile:
        """The profile."""
        if self._result is None:
            raise ArgumentError("profile: the result is available after the with block")
        return self._result

    def __enter__(self) -> Self:
        self.restart()
        with contextlib.ExitStack() as stack:
            self._recorder = None
            if self._memory:
                self._recorder = stack.enter_context(runtime.load(self.backend).memory.record())
            stack.enter_context(self.measuring())
            self._open = stack.pop_all()
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
        before, self.events = self.events, Events()
        self.events.dispatches_backward = before.dispatches_backward

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Measure calls within the block; several blocks add up."""
        meter = Meter(self.backend, self.events, self.operations)
        with timed(meter), timed_modules(self.modules, self.events):
            yield

    def summarize(
        self,
        seconds: float,
        *,
        steps: int = 1,
        plain: Sequence[float] = (),
        compiled: bool = False,
        between: float | None = None,
        memory: dict[str, int] | None = None,
        layer_memory: dict[str, int] | None = None,
        dtype: str = "float32",
    ) -> Profile:
        """Return the profile of the measured calls.

        Args:
            seconds: Time of all measured steps together, with the time of the measurement.
            steps: Number of steps.
            plain: Times of steps that were not measured.
            compiled: Whether these were compiled.
            between: Mean time between steps.
            memory: Bytes by name.
            layer_memory: Bytes by layer.
            dtype: Dtype of the matrix product to compare with.
        """
        events = self.events
        ops = rows_by_op(events, steps)
        recorded = events.dispatches_backward and events.native("backward") > 0
        costs = dispatch_costs(self.backend, recorded=recorded)
        return Profile(
            title=self.title,
            backend=self.backend,
            device=str(default_device(self.backend)),
            steps=steps,
            seconds=max(0.0, seconds - events.overhead) / steps,
            overhead=events.overhead / steps,
            plain=min(plain) if plain else None,
            compiled=compiled,
            between=between,
            parts={name: value / steps for name, value in events.parts.items()},
            dispatch=dispatch_seconds(events, costs, steps),
            ops=ops,
            groups=rows_by_group(ops),
            modules=rows_by_module(events, self.modules, steps),
            peak=matrix_rate(self.backend, dtype),
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
