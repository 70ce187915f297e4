"""Sizes of the results of a model's operations, layer by layer."""

from __future__ import annotations

from typing import Any

from ember_ml._core import recording, tree
from ember_ml._core.tensor import EmberTensor
from ember_ml.nn.module import Module
from ember_ml.training.layer_marks import layers_of
from ember_ml.training.trainer import Trainer, batches


class OutputBytes:
    """Recorder that adds up the sizes of the results of ops, by the layer that is running."""

    causal = None
    quick = None

    def __init__(self, names: list[str]) -> None:
        self.sizes = dict.fromkeys(names, 0)
        self.current: str | None = None

    def log_of(self, operands: list[EmberTensor]) -> None:
        """Return None: no values are tracked."""

    def call(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tapes: tuple[Any, ...]
    ) -> Any:
        """Compute an op, and count the bytes of its results."""
        with recording.only():
            out = op.plain(*args, **kwargs)
        if self.current is not None:
            tensors = [x for x in tree.leaves_of(out) if isinstance(x, EmberTensor)]
            self.sizes[self.current] += sum(x.nbytes for x in tensors)
        return out


def output_bytes(trainer: Trainer, batch: object) -> dict[str, int]:
    """Return the bytes of the results of the ops of each layer, in one forward pass.

    Args:
        trainer: The trainer.
        batch: A batch.
    """
    layers = layers_of(trainer.model)
    recorder = OutputBytes(list(layers))
    handles = []
    for name, module in layers.items():
        handles.append(module.register_forward_pre_hook(_enter(recorder, name)))
        handles.append(module.register_forward_hook(_leave(recorder)))
    parts = batches.inputs_of(batch, trainer.takes_mask)
    try:
        with recording.only(recorder):
            batches.apply(trainer.model, parts)
    finally:
        for handle in handles:
            handle.remove()
    return recorder.sizes


def _enter(recorder: OutputBytes, name: str) -> Any:
    def hook(module: Module, args: object) -> None:
        recorder.current = name

    return hook


def _leave(recorder: OutputBytes) -> Any:
    def hook(module: Module, args: object, output: object) -> None:
        recorder.current = None

    return hook
