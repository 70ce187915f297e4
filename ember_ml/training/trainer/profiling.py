"""Profile of some steps of a trainer: warm-up, plain steps, measured steps, memory."""

from __future__ import annotations

import contextlib
import gc
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import native_arrays
from ember_ml.training.callbacks import Callback
from ember_ml.training.layer_marks import layer_marks, layers_of
from ember_ml.training.profiling.events import OUTSIDE, Event, Events
from ember_ml.training.profiling.memory import kept_by_layer, peak_of
from ember_ml.training.profiling.options import ProfileLike, ProfileOptions, options_of
from ember_ml.training.profiling.profiler import Profiler
from ember_ml.training.profiling.result import Profile
from ember_ml.training.profiling.writing import check_folder, write_profile
from ember_ml.training.trainer.compiled_step import shapes_of
from ember_ml.training.trainer.step_times import Shapes, StepTimes

if TYPE_CHECKING:
    from ember_ml.training.trainer.step import StepResult
    from ember_ml.training.trainer.trainer import Trainer

Run: TypeAlias = "Callable[[], StepResult | None]"
"""Function that runs a batch, or completes a step."""


class StepProfiler(Callback):
    """Callback that profiles the first steps of a trainer, which train the model like all others.

    Args:
        trainer: The trainer.
        options: Numbers of steps, and the folder of the report.

    Attributes:
        options: The options.
        is_done: Whether all steps are measured.
        stops: Whether training stops then, and Ctrl-C saves no checkpoint. Default: False.
    """

    main_only = True

    def __init__(self, trainer: Trainer, options: ProfileOptions) -> None:
        self.options = options
        self.is_done = False
        self.stops = False
        self._trainer = trainer
        self._profiler: Profiler | None = None
        self._count = 0  # completed steps
        self._shapes: list[object] = []  # of the batches of a step so far
        self._partial = 0.0  # their seconds
        self._plain = StepTimes()
        self._gaps: list[float] = []  # seconds before batches
        self._last: float | None = None
        self._measured = 0.0
        self._measured_steps: list[Shapes] = []
        self._compiled = self._compiles_later = False
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
        runner = self._trainer._runner
        if not runner.group.count:  # earlier batches were dropped or belong to another step
            self._shapes, self._partial = [], 0.0
        self._shapes.append(shapes_of(batch))
        return self._measure(lambda: runner(batch))

    def complete(self) -> StepResult | None:
        """Complete the last step of an epoch, which has fewer batches than others."""
        return self._measure(self._trainer._runner.complete)

    def _measure(self, run: Run) -> StepResult | None:
        options = self.options
        first = options.warmup + options.steps  # its measured times are dropped: caches are empty
        if self._count < first:
            result = self._timed(run)
        elif self._count <= first + options.steps:
            result = self._run_measured(run)
        else:
            result = self._run_with_memory(run)
        if result is not None:
            self._end_step(first)
        return result

    def _timed(self, run: Run) -> StepResult | None:
        """Run a batch, and add its time to that of the step; record the time since the last one."""
        start = time.perf_counter()
        if self._last is not None and self._count >= self.options.warmup:
            self._gaps.append(start - self._last)
        result = run()
        runtime.load(self._trainer.backend).synchronize()
        self._last = time.perf_counter()
        self._partial += self._last - start
        return result

    def _run_measured(self, run: Run) -> StepResult | None:
        trainer, profiler = self._trainer, self._profiler
        if profiler is None or profiler.backend != trainer.backend:  # the model may have moved
            profiler = self._profiler = Profiler(trainer.model)
        runner, self._last = trainer._runner, None
        runner.eager = True
        try:
            with profiler.measuring(), _parts(trainer, profiler.events):
                return self._timed(run)
        finally:
            runner.eager, self._last = False, None

    def _run_with_memory(self, run: Run) -> StepResult | None:
        trainer = self._trainer
        meter = runtime.load(trainer.backend).memory
        layers = layers_of(trainer.model)
        gc.collect()  # freed memory that was allocated before would hide new memory
        waiting = [g for g in trainer._runner.group.gradients if g is not None]
        held = (
            *(trainer.optimizer.state_arrays(), native_arrays(waiting)),
            native_arrays(trainer.optimizer.parameters),
            None if trainer.train_metrics is None else trainer.train_metrics.states(),
        )
        with meter.record() as recorder, layer_marks(layers, recorder.mark):
            result = run()
        del held
        changes = recorder.changes
        fixed = {
            "parameters": trainer.model.num_bytes(),
            "optimizer_state": trainer.optimizer.state_bytes(),
        }
        peak = peak_of(changes) + sum(fixed.values()) + sum(g.nbytes for g in waiting)
        self._memory = {**fixed, "peak": max(self._memory.get("peak", 0), peak)}
        if meter.SEES_MARKS:
            self._layer_memory = kept_by_layer(changes)
        return result

    def _end_step(self, first: int) -> None:
        """Count a completed step; complete the profile after the last one."""
        options, shapes = self.options, tuple(self._shapes)
        if options.warmup <= self._count < first:
            self._plain.add(shapes, self._partial)
            runner = self._trainer._runner
            self._compiled, self._compiles_later = runner.compiled, runner.compiles_later
        elif self._count == first:
            assert self._profiler is not None
            self._profiler.restart()
        elif first < self._count <= first + options.steps:
            self._measured += self._partial
            self._measured_steps.append(shapes)
        self._partial = 0.0
        self._count += 1
        if self._count >= options.total:
            self._complete()

    def _complete(self) -> None:
        trainer, options, steps = self._trainer, self.options, self._measured_steps
        assert self._profiler is not None
        self.is_done = True
        precision = trainer.config.precision
        batches = statistics.fmean(map(len, steps))
        self._result = self._profiler.summarize(
            self._measured,
            steps=len(steps),
            plain=self._plain.shortest(steps),
            compiled=self._compiled,
            compiles_later=self._compiles_later,
            between=statistics.fmean(self._gaps) * batches if self._gaps else None,
            memory=self._memory,
            layer_memory=self._layer_memory,
            dtype=None if precision == "float32" else precision,
        )
        if options.folder is not None and trainer.is_main:
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
        if trainer.interrupted or sys.exc_info()[0] is not None:
            return
        warnings.warn(
            f"profile: training ended after {self._count} steps, before a step was profiled; "
            f"train at least {self.options.total} steps, or pass ProfileOptions with fewer",
            stacklevel=7,
        )


@contextlib.contextmanager
def _parts(trainer: Trainer, events: Events) -> Iterator[None]:
    """Measure the forward pass, the backward pass and the update of a step within the block."""
    optimizer = trainer.optimizer
    own = [
        (target, name, vars(target)[name])
        for target, name in ((trainer, "compute_loss"), (optimizer, "step"))
        if name in vars(target)
    ]
    compute, update = trainer.compute_loss, optimizer.step
    start = begin = time.perf_counter()
    overhead, updates = events.overhead, False

    def mark(name: str) -> None:
        nonlocal begin, overhead
        now = time.perf_counter()
        events.parts[name] += now - begin - (events.overhead - overhead)
        events.add(Event(name, "part", name, OUTSIDE, begin, now - begin))
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
        name = "step" if trainer.config.accumulate == 1 else "batch"
        events.add(Event(name, "part", "", OUTSIDE, start, begin - start))
    finally:
        events.differentiates = False
        events.op, events.layer = None, OUTSIDE  # an error may have left a backward pass
        del trainer.compute_loss, optimizer.step
        for target, name, function in own:
            setattr(target, name, function)


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
