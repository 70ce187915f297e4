"""Training and evaluation on the positions that are read: the others need no logits."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.nn.models.language import LanguageModel
from ember_ml.nn.module import Module
from ember_ml.training.losses.base import Loss
from ember_ml.training.metrics import Metric
from ember_ml.training.trainer.batches import Parts

MOST = 0.75
"""Largest share of positions to gather; above it, computing all positions is as fast."""


def takes_positions(model: Module) -> bool:
    """Return whether a model can compute the logits of some positions alone."""
    if not isinstance(model, LanguageModel):
        return False
    if "at" not in inspect.signature(model.forward).parameters:
        return False
    return all(each is None or each.is_position_wise for each in (model.backbone.norm, model.head))


def read_parts(parts: Parts, loss: Any, metrics: Sequence[Metric] | None = None) -> Parts:
    """Return a batch of a language model with only the targets that the loss and metrics read.

    The model gets the indices of their positions. The batch is returned unchanged if most
    targets are read, and while a compiler traces: the number of positions is not known then.

    Args:
        parts: The parts of a batch.
        loss: The loss.
        metrics: Metrics that are computed too. They get the same number of positions of each
            example, so that some of these have no target. Default: only the loss is computed.
    """
    targets = parts.targets
    tokens = parts.inputs[0] if len(parts.inputs) == 1 else None
    weight = parts.options.get("sample_weight")
    if not isinstance(loss, Loss):  # it may read all targets
        return parts
    if not isinstance(targets, EmberTensor) or not isinstance(tokens, EmberTensor):
        return parts
    if targets.shape != tokens.shape or tokens.ndim != 2 or not tokens.size:
        return parts
    if "at" in parts.named or not _fits(weight, targets):
        return parts
    reads = _reads(targets, weight, loss, metrics or ())
    if reads is None or runtime.LOADED[reads.backend].truth(ops.any(reads).native) is None:
        return parts
    at = ops.flatnonzero(reads) if metrics is None else _rows(reads)
    if not 0 < at.size <= MOST * targets.size:
        return parts
    options = {} if weight is None else {"sample_weight": _choose(weight, at)}
    named = {**parts.named, "at": at}
    return parts._replace(targets=_choose(targets, at), named=named, options=options)


def _fits(weight: Any, targets: Tensor) -> bool:
    return weight is None or (isinstance(weight, EmberTensor) and weight.shape == targets.shape)


def _reads(
    targets: Tensor, weight: Tensor | None, loss: Loss, metrics: Sequence[Metric]
) -> Tensor | None:
    """Return a mask of the targets that are read; None if it may be all of them.

    The loss ignores targets of weight 0; a metric may read them.
    """
    reads = loss.read_targets(targets)
    if reads is not None and weight is not None:
        reads = ops.logical_and(reads, weight != 0)
    for metric in metrics:
        mask = metric.read_targets(targets)
        if reads is None or mask is None:
            return None
        reads = ops.logical_or(reads, mask)
    return reads


def _rows(reads: Tensor) -> Tensor:
    """Return the indices of the targets that are read, and of others to fill up shorter rows."""
    batch, time = reads.shape
    longest = int(ops.max(ops.sum(reads, axis=1)))
    first = ops.argsort(ops.astype(ops.logical_not(reads), "int64"), axis=1, stable=True)
    starts = time * ops.arange(batch, dtype="int64")
    return ops.reshape(first[:, :longest] + starts[:, None], (-1,))


def _choose(x: Tensor, at: Tensor) -> Tensor:
    return ops.take(ops.reshape(x, (-1,)), at, axis=0)
