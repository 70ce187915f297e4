"""Evaluation and prediction with a trainer's model."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError
from ember_ml.backend import use_backend
from ember_ml.nn.functional import current_values, exclusive, substitute
from ember_ml.nn.module import inference_mode
from ember_ml.training.trainer import batches, sources
from ember_ml.training.trainer.outputs import OutputLosses
from ember_ml.training.trainer.sources import DataLike

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer


@contextlib.contextmanager
def evaluating(trainer: Trainer) -> Iterator[bool]:
    """Put the model into inference mode, and yield whether its weights differ from training.

    Another thread that evaluates or trains the model waits.
    """
    model, optimizer, ema = trainer.model, trainer.optimizer, trainer.ema
    parameters = model.parameters()
    with contextlib.ExitStack() as stack:
        stack.enter_context(exclusive([*parameters, *model.buffers()]))
        stack.enter_context(use_backend(trainer.backend))
        stack.enter_context(inference_mode(model.modules()))
        trained = current_values(parameters)
        # an optimizer does not restore its training values to the bit
        stack.enter_context(substitute(parameters, trained))
        if optimizer.training:
            stack.callback(optimizer.train)
        optimizer.eval()
        if ema is not None:
            stack.enter_context(ema.applied())
        pairs = zip(parameters, trained, strict=True)
        yield any(now.native is not before.native for now, before in pairs)


def evaluate(trainer: Trainer, data: DataLike, batch_size: int) -> dict[str, Any]:
    """Return the mean loss and the metrics."""
    loader = sources.loader(data, batch_size, shuffle=False, seed=0)
    losses, weights, parts = [], [], []
    with evaluating(trainer):
        for metric in trainer.metrics:
            metric.reset()
        for batch in loader.once(trainer.dtype):
            loss, outputs = trainer.compute(batch)
            losses.append(float(loss))
            weights.append(trainer.measure(batch, outputs))
            parts.append(_output_losses(trainer, batch, outputs))
        results = {metric.name: metric.compute() for metric in trainer.metrics} if losses else {}
    if not losses:
        raise ArgumentError("evaluate: the data has no batches")
    of_outputs = {name: _mean([each[name] for each in parts], weights) for name in parts[0]}
    return {"loss": _mean(losses, weights)} | of_outputs | results


def _mean(values: list[float], weights: list[float]) -> float:
    """Return the weighted mean of the batches that have a weight; NaN if none has."""
    pairs = zip(values, weights, strict=True)
    total = math.fsum(value * weight for value, weight in pairs if weight)
    weight = math.fsum(weights)
    return total / weight if weight else math.nan


def _output_losses(trainer: Trainer, batch: object, outputs: Any) -> dict[str, float]:
    """Return the loss of each output, if there are several."""
    if not isinstance(trainer.loss, OutputLosses) or trainer.overrides_compute():
        return {}
    parts = batches.split(batch, True, trainer.takes_mask)
    losses = trainer.loss.parts(outputs, parts.targets, **parts.options)
    return {f"{name}_loss": float(loss) for name, loss in losses.items()}


def predict(trainer: Trainer, data: DataLike, batch_size: int) -> Any:
    """Return the concatenated outputs of the model."""
    outputs = []
    with evaluating(trainer):
        loader = sources.loader(data, batch_size, shuffle=False, seed=0)
        for batch in loader.once(trainer.dtype):
            parts = batches.inputs_of(batch, trainer.takes_mask)
            outputs.append(tree.flatten(batches.apply(trainer.model, parts)))
    if not outputs:
        raise ArgumentError("predict: the data has no batches")
    columns = zip(*[leaves for leaves, _ in outputs], strict=True)
    return tree.unflatten(outputs[0][1], [ops.concat(list(column), axis=0) for column in columns])
