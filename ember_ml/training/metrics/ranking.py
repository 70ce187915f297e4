"""Metrics of the ranking of scores."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.dtype import int64
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.registry import register
from ember_ml.training.losses.reduction import wide
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics import state as states
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State


@register("metrics/auroc", aliases=["roc_auc"])
class AUROC(Metric):
    """Area under the ROC curve, computed exactly: all scores are stored.

    It is the probability that a positive example has a higher score than a negative one.
    Predictions are scores of the targets' shape for targets of 0 and 1, or scores (..., classes).
    In the latter case the result is the mean over the classes, each against the rest. Classes
    without positive or without negative examples are skipped; NaN if none remains.

    Args:
        from_logits: Whether to apply a softmax to scores of several classes.
        ignore_index: Targets with this value are ignored.
    """

    def __init__(self, from_logits: bool = True, ignore_index: int = -100) -> None:
        super().__init__("auroc")
        self.from_logits = from_logits
        self.ignore_index = ignore_index

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the scores (examples, classes), one column if binary, and their targets."""
        classes = inputs.as_classes(target)
        counts = inputs.valid("AUROC", classes, mask, self.ignore_index)
        scores = wide(prediction)
        if prediction.shape != target.shape:
            inputs.check_scores("AUROC", prediction, classes)
            scores = ops.softmax(scores, -1) if self.from_logits else scores
        width = 1 if prediction.shape == target.shape else prediction.shape[-1]
        known = ops.where(counts, classes, -1)  # -1 marks ignored targets
        return {"scores": ops.reshape(scores, (-1, width)), "classes": ops.reshape(known, (-1,))}

    def reset(self) -> None:
        """Discard all batches."""
        super().reset()
        self._parts: list[State] = []

    def _take(self, batch: State) -> None:
        if self._parts and self._parts[-1]["scores"].shape[1] != batch["scores"].shape[1]:
            widths = [part["scores"].shape[1] for part in (self._parts[-1], batch)]
            raise ShapeError(
                f"AUROC: got scores of {widths[1]} classes after batches of {widths[0]} classes"
            )
        self._parts.append(batch)
        if len(self._parts) % states.FLUSH_EVERY == 0:
            for part in self._parts[-states.FLUSH_EVERY :]:
                states.flush(part)

    def _gathered(self) -> State:
        """Return all batches as one; they are concatenated once, not at each update."""
        if len(self._parts) > 1:
            backend = self._parts[-1]["scores"].backend
            parts = [states.moved(part, backend) for part in self._parts]
            names = ("scores", "classes")
            joined = {name: ops.concat([part[name] for part in parts], axis=0) for name in names}
            self._parts = [joined]
        return self._parts[0] if self._parts else {}

    def compute(self) -> float:
        """Return the area; with several classes, their mean."""
        state = self._gathered()
        if not state:
            return math.nan
        rows = ops.nonzero(state["classes"] >= 0)[0]
        scores, classes = (ops.take(state[name], rows, axis=0) for name in ("scores", "classes"))
        if bool(ops.any(ops.isnan(scores))):
            return math.nan
        width = scores.shape[1]
        wanted = [1] if width == 1 else range(width)
        columns = [ops.reshape(ops.take(scores, [at], axis=1), (-1,)) for at in range(width)]
        areas = [_area(*each) for each in zip(columns, (classes == c for c in wanted), strict=True)]
        known = [area for area in areas if not math.isnan(area)]
        return sum(known) / len(known) if known else math.nan


def _area(scores: Tensor, positive: Tensor) -> float:
    """Return the area from the sum of the positives' ranks; ties have their mean rank."""
    hits, size = int(ops.sum(positive)), scores.size
    if hits in (0, size):
        return math.nan
    ordered = ops.sort(scores)
    sides = [ops.searchsorted(ordered, scores, side=side) for side in ("left", "right")]
    places = ops.astype(sides[0], int64) + ops.astype(sides[1], int64)
    twice = int(ops.sum(ops.where(positive, places, 0))) + hits
    return (twice - hits * (hits + 1)) / (2 * hits * (size - hits))
