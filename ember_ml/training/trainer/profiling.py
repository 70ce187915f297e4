"""Profile of some steps of a trainer: warm-up, plain steps, measured steps, memory."""

from __future__ import annotations

import contextlib
import gc
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import native_arrays
from ember_ml.training.callbacks import Callback
from ember_ml.training.layer_marks import layer_marks, layers_of
from ember_ml.training.profiling.events import Event, Events
from ember_ml.training.profiling.memory import kept_by_layer, peak_of
from ember_ml.training.profiling.options import ProfileLike, ProfileOptions, options_of
from ember_ml.training.profiling.profiler import Profiler
from ember_ml.training.profiling.result import Profile
from ember_ml.training.profiling.writing import check_folder, write_profile

if TYPE_CHECKING:
    from ember_ml.training.trainer.step import StepResult
    from ember_ml.training.trainer.trainer import Trainer


class StepProfiler(Callback):
    """Callback that profiles the first steps of a trainer, which train the model like all others.

    Args:
        trainer: The trainer.
        options: Numbers of steps, and the folder of the report.

    Attributes:
        options: The options.
        is_done: Whether all steps are measured.
        stops: Whether training stops then. Default: False.
    """

    main_only = True

    def __init__(self, trainer: Trainer, options: ProfileOptions) -> None:
        self.options = options
        self.is_done = False
        self.stops = False
        self._trainer = trainer
        self._profiler = Profiler(trainer.model)
        self._count = 0  # completed steps
        self._plain: list[float] = []
        self._measured = 0.0
        self._measured_steps = 0
        self._between: list[float] = []
        self._last: float | None = None
        self._partial = 0.0  # seconds of the batches of a step so far
        self._compiled = False
        self._memory: dict[str, int] = {}
        self._layer_memory: dict[str, int] = {}
        self._result: Profile | None = None

    @property
    def result(self) -> Profile:
        """The profile, after its last step or after `fit`."""
        if self._result is None:
            raise ArgumentError(
                f"Trainer: the profile is complete after {self.options.total} steps; "
                f"{self._count} have run"
            )
        return self._result

    def run(self, batch: object) -> StepResult | None:
        """Run a batch as the current step requires: warm-up, plain, measured, or with memory.

        Args:
            batch: The batch.
        """
        options, runner = self.options, self._trainer._runner
        first = options.warmup + options.steps  # its measured times are dropped: caches are empty
        if self._count < first:
            result, seconds = self._timed(lambda: runner(batch))
            self._partial += seconds
        elif self._count <= first + options.steps:
            result = self._run_measured(batch)
        else:
            result = self._run_with_memory(batch)
        if result is not None:
            self._end_step(first)
        return result

    def _timed(self, run: Callable[[], StepResult | None]) -> tuple[StepResult | None, float]:
        """Run a batch, and return its result and time; the time between batches is recorded."""
        start = time.perf_counter()
        if self._last is not None:
            self._between.append(start - self._last)
        result = run()
        runtime.load(self._trainer.backend).synchronize()
        self._last = time.perf_counter()
        return result, self._last - start

    def _run_measured(self, batch: object) -> StepResult | None:
        runner, profiler = self._trainer._runner, self._profiler
        self._last = None
        runner.eager = True
        try:
            with profiler.measuring(), _parts(self._trainer, profiler.events):
                result, seconds = self._timed(lambda: runner(batch))
        finally:
            runner.eager = False
        self._last = None
        profiler.events.add(Event("step", "part", "", -1, time.perf_counter() - seconds, seconds))
        self._measured += seconds
        return result

    def _run_with_memory(self, batch: object) -> StepResult | None:
        trainer = self._trainer
        meter = runtime.load(trainer.backend).memory
        layers = layers_of(trainer.model)
        gc.collect()  # freed memory that was allocated before would hide new memory
        held = trainer.optimizer.state_arrays(), native_arrays(trainer.optimizer.parameters)
        with meter.record() as recorder, layer_marks(layers, recorder.mark):
            result = trainer._runner(batch)
        del held
        changes = recorder.changes
        fixed = {
            "parameters": trainer.model.num_bytes(),
            "optimizer_state": trainer.optimizer.state_bytes(),
        }
        peak = max(self._memory.get("peak", 0), peak_of(changes) + sum(fixed.values()))
        self._memory = {**fixed, "peak": peak}
        if meter.SEES_MARKS:
            self._layer_memory = kept_by_layer(changes)
        return result

    def _end_step(self, first: int) -> None:
        """Count a completed step; complete the profile after the last one."""
        options = self.options
        if options.warmup <= self._count < first:
            self._plain.append(self._partial)
            self._compiled = self._trainer._runner.compiled
        elif self._count == first:
            self._measured = 0.0
            self._profiler.restart()
        elif first < self._count <= first + options.steps:
            self._measured_steps += 1
        self._partial = 0.0
        self._count += 1
        if self._count >= options.total:
            self._complete()

    def _complete(self) -> None:
        config, options = self._trainer.config, self.options
        self.is_done = True
        self._result = self._profiler.summarize(
            self._measured,
            steps=self._measured_steps,
            plain=self._plain,
            compiled=self._compiled,
            between=sum(self._between) / len(self._between) if self._between else None,
            memory=self._memory,
            layer_memory=self._layer_memory,
            dtype=config.precision,
        )
        if options.folder is not None and self._trainer.is_main:
            write_profile(self._result, options.folder, overwrite=options.overwrite)

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Stop the training if the profile is complete."""
        if self.stops and self.is_done:
            trainer.should_stop = True

    def on_fit_end(self, trainer: Trainer) -> None:
        """Complete the profile if training ends early and at least one step is measured."""
        if self.is_done or not self._count:
            return
        if self._measured_steps:
            self._complete()
            return
        warnings.warn(
            f"profile: training ended after {self._count} steps, before a step was profiled; "
            f"train at least {self.options.total} steps, or pass ProfileOptions with fewer",
            stacklevel=2,
        )


@contextlib.contextmanager
def _parts(trainer: Trainer, events: Events) -> Iterator[None]:
    """Measure the forward pass, the backward pass and the update of a step within the block."""
    own = {name: x for name, x in vars(trainer).items() if name == "compute_loss"}
    optimizer = trainer.optimizer
    compute, update = trainer.compute_loss, optimizer.step
    begin = time.perf_counter()
    overhead, updates = events.overhead, False

    def mark(name: str) -> None:
        nonlocal begin, overhead
        now = time.perf_counter()
        events.parts[name] += now - begin - (events.overhead - overhead)
        events.add(Event(name, "part", name, -1, begin, now - begin))
        begin, overhead = now, events.overhead

    def timed_compute(batch: object) -> Any:
        result = compute(batch)
        mark("forward")
        events.differentiates = True
        return result

    def timed_update(*args: Any, **kwargs: Any) -> Any:
        nonlocal updates
        mark("backward")
        events.differentiates, updates = False, True
        return update(*args, **kwargs)

    trainer.compute_loss = timed_compute  # type: ignore[method-assign]
    optimizer.step = timed_update  # type: ignore[method-assign]
    try:
        yield
        mark("update" if updates else "backward")
    finally:
        events.differentiates = False
        del trainer.compute_loss, optimizer.step
        vars(trainer).update(own)


def options_for(trainer: Trainer, value: ProfileLike) -> ProfileOptions:
    """Return the options of a profile; raise if the run or the folder does not permit one.

    Args:
        trainer: The trainer.
        value: True, a folder or options.
    """
    options = options_of(value)
    if trainer.parallel is not None:
        raise ArgumentError(
            "Trainer: profile measures a process that trains alone; leave out profile or strategy"
        )
    if options.folder is not None:
        check_folder(options.folder, options.overwrite)
    return options
