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
from ember_ml.training.trainer.parallel import Parallel
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
        if trainer.parallel is not None:
            stack.enter_context(trainer.parallel.evaluated())
        pairs = zip(parameters, trained, strict=True)
        yield any(now.native is not before.native for now, before in pairs)


def evaluate(trainer: Trainer, data: DataLike, batch_size: int) -> dict[str, Any]:
    """Return the mean loss and the metrics."""
    loader = sources.loader(data, batch_size, shuffle=False, seed=0)
    parallel = trainer.parallel
    losses, weights, parts = [], [], []
    with evaluating(trainer):
        for metric in trainer.metrics:
            metric.reset()
        for batch in loader.once(trainer.dtype):
            batch, counts = (batch, True) if parallel is None else parallel.part(batch)
            loss, outputs, weight = trainer.evaluate_batch(batch, counts)
            losses.append(float(loss))
            weights.append(weight)
            parts.append(_output_losses(trainer, batch, outputs))
        if parallel is not None:
            parallel.merge(trainer.metrics)
        results = {metric.name: metric.compute() for metric in trainer.metrics} if losses else {}
    if not losses:
        raise ArgumentError("evaluate: the data has no batches")
    columns = {"loss": losses} | {name: [each[name] for each in parts] for name in parts[0]}
    return _means(columns, weights, parallel) | results


def _means(
    columns: dict[str, list[float]], weights: list[float], parallel: Parallel | None
) -> dict[str, float]:
    """Return weighted means over the batches that have a weight; NaN if none has."""
    totals = [
        math.fsum(x * weight for x, weight in zip(values, weights, strict=True) if weight)
        for values in columns.values()
    ]
    sums = [math.fsum(weights), *totals]
    weight, *totals = sums if parallel is None else parallel.sums(sums)
    return {
        name: total / weight if weight else math.nan
        for name, total in zip(columns, totals, strict=True)
    }


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
