"""Recording of the memory that training steps allocate, layer by layer."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ember_ml._core import runtime
from ember_ml._core.tensor import native_arrays
from ember_ml.backend.interface import Memory, MemoryChange
from ember_ml.nn._hooks import drop_unused, hooks_of
from ember_ml.nn.containers import ModuleDict, ModuleList
from ember_ml.nn.models.backbone import Backbone
from ember_ml.nn.module import Module
from ember_ml.nn.sequential import Sequential
from ember_ml.training.trainer import Trainer
from ember_ml.training.tuning.preserved import try_step

ENTER, EXIT = "enter ", "exit "
"""Starts of the marks before and after a layer."""
_REPEATS = 3
"""Number of recordings of a lazy backend, of which the largest counts."""
LOSS = "loss"
"""Name of the loss among the layers."""


def layers_of(model: Module) -> dict[str, Module]:
    """Return the layers of a model that reports list: its parts, and those of its stacks.

    Args:
        model: The model.
    """
    stacks = {id(each.blocks) for each in model.modules() if isinstance(each, Backbone)}

    def visit(module: Module, name: str) -> Iterator[tuple[str, Module]]:
        opens = isinstance(module, (Backbone, ModuleList, ModuleDict, Sequential))
        if name and not opens and id(module) not in stacks:
            yield name, module
            return
        for part, child in module.named_children():
            yield from visit(child, f"{name}.{part}" if name else part)

    return dict(visit(model, "")) or {"model": model}


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
    layers = layers_of(trainer.model)
    before = {}
    for name, module in layers.items():
        hooks = hooks_of(module)
        before[name] = hooks.around
        hooks.around = _around(name, mark, hooks.around)
    loss = trainer.loss
    trainer.loss = None if loss is None else _MarkedLoss(loss, mark)
    try:
        yield
    finally:
        trainer.loss = loss
        for name, module in layers.items():
            hooks_of(module).around = before[name]
            drop_unused(module)


def _around(
    name: str, mark: Callable[[str], None], inner: Callable[..., Any] | None
) -> Callable[..., Any]:
    def run(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        mark(ENTER + name)
        call = hooks_of(module).run_inner if inner is None else inner
        output = call(module, args, kwargs)
        mark(EXIT + name)
        return output

    return run


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
