"""Hand-over of arrays between threads."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ember_ml._core import runtime
from ember_ml._core.tensor import EmberTensor
from ember_ml.nn.module import Module


def evaluate(*values: object) -> None:
    """Compute the lazy arrays in some pytrees.

    Frameworks with lazy arrays bind their graphs to threads, so arrays must be evaluated before
    another thread uses them.

    Args:
        values: Pytrees of tensors, native arrays and other objects.
    """
    arrays: defaultdict[str, list[Any]] = defaultdict(list)
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, EmberTensor):
            arrays[value.backend].append(value.native)
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
        elif (backend := runtime.backend_of(value)) is not None:
            arrays[backend].append(value)
    for backend, natives in arrays.items():
        runtime.LOADED[backend].autodiff.evaluate(natives)


def evaluate_module(module: Module) -> None:
    """Compute the lazy parameters and buffers of a module.

    Args:
        module: Module that another thread will use.
    """
    evaluate(*module.parameters(), *module.buffers())
