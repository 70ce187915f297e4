"""Recording of the memory that training steps allocate, layer by layer."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any

from ember_ml._core import runtime
from ember_ml._core.tensor import native_arrays
from ember_ml.backend.interface import Memory, MemoryChange
from ember_ml.training.layer_marks import ENTER, EXIT, layer_marks, layers_of
from ember_ml.training.trainer import Trainer
from ember_ml.training.tuning.preserved import try_step

_REPEATS = 3
"""Number of recordings of a lazy backend, of which the largest counts."""
LOSS = "loss"
"""Name of the loss among the layers."""


def record_step(trainer: Trainer, batch: object) -> list[MemoryChange]:
    """Return the changes of the memory in use during a training step.

    Args:
        trainer: Trainer within `preserved`.
        batch: The batch. With accumulation, the step consists of several equal batches.
    """
    meter = runtime.load(trainer.backend).memory
    if meter.SEES_MARKS:
        return _record(meter, trainer, batch)
    # The order in which lazy arrays are computed and freed varies.
    return max((_record(meter, trainer, batch) for _ in range(_REPEATS)), key=lambda x: x[0].peak)


def _record(meter: Memory, trainer: Trainer, batch: object) -> list[MemoryChange]:
    # A step before replaces what was allocated before the recording, and could not be counted.
    held = trainer.optimizer.state_arrays(), native_arrays(trainer.optimizer.parameters)
    with _without_collection(), meter.record() as recorder:
        _step(trainer, batch)
        recorder.restart()
        with _marked(trainer, recorder.mark):
            _step(trainer, batch)
    del held
    return recorder.changes


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Disable the garbage collector, which would free memory of other computations."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _step(trainer: Trainer, batch: object) -> None:
    for _ in range(trainer.config.accumulate):
        try_step(trainer, batch)


@contextlib.contextmanager
def _marked(trainer: Trainer, mark: Callable[[str], None]) -> Iterator[None]:
    """Mark the start and the end of each layer and of the loss within the block."""
    loss = trainer.loss
    trainer.loss = None if loss is None else _MarkedLoss(loss, mark)
    try:
        with layer_marks(layers_of(trainer.model), mark):
            yield
    finally:
        trainer.loss = loss


class _MarkedLoss:
    """Loss with marks before and after it."""

    def __init__(self, loss: Callable[..., Any], mark: Callable[[str], None]) -> None:
        self._loss, self._mark = loss, mark

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._mark(ENTER + LOSS)
        value = self._loss(*args, **kwargs)
        self._mark(EXIT + LOSS)
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loss, name)
