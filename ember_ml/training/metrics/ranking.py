"""Metrics of the ranking of scores."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.dtype import int64
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.registry import register
from ember_ml.training.losses.base import wide
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics import state as states
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State


@register("metrics/auroc", aliases=["roc_auc"])
class AUROC(Metric[float]):
    """Exact area under the receiver operating characteristic; stores all scores.

    It is the probability that a random positive example scores higher than a random negative one.
    Predictions are scores of the targets' shape for targets of 0 and 1, or scores (..., classes).
    The area of several classes is the one-vs-rest mean. Classes without positive or negative
    examples are skipped; the area is NaN if none remains.

    Args:
        from_logits: Whether scores of several classes are logits, to apply softmax to.
        ignore_index: Target value to ignore.
    """

    skips_ignored = True

    def __init__(self, from_logits: bool = True, ignore_index: int = -100) -> None:
        super().__init__("auroc")
        self.from_logits = from_logits
        self.ignore_index = ignore_index

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return scores (examples, classes), one column if binary, and class indices (examples)."""
        classes = inputs.as_classes(target)
        valid = inputs.valid("AUROC", classes, mask, self.ignore_index)
        scores = wide(prediction)
        if prediction.shape != target.shape:
            inputs.check_scores("AUROC", prediction, classes)
            scores = ops.softmax(scores, -1) if self.from_logits else scores
        width = 1 if prediction.shape == target.shape else prediction.shape[-1]
        labels = ops.where(valid, classes, -1)  # -1 marks targets to skip in `compute`
        return {"scores": ops.reshape(scores, (-1, width)), "classes": ops.reshape(labels, (-1,))}

    def reset(self) -> None:
        """Discard all batches."""
        super().reset()
        self._parts: list[State] = []

    def _accumulate(self, batch: State) -> None:
        if self._parts and self._parts[-1]["scores"].shape[1] != batch["scores"].shape[1]:
            widths = [part["scores"].shape[1] for part in (self._parts[-1], batch)]
            raise ShapeError(
                f"AUROC: got scores of {widths[1]} classes after batches of {widths[0]} classes"
            )
        self._parts.append(batch)
        if len(self._parts) % states.FLUSH_EVERY == 0:
            for part in self._parts[-states.FLUSH_EVERY :]:
                states.flush(part)

    def _total(self) -> State:
        """Return all batches in one, concatenated once instead of with each batch."""
        if len(self._parts) > 1:
            backend = self._parts[-1]["scores"].backend
            parts = [states.moved(part, backend) for part in self._parts]
            names = ("scores", "classes")
            self._parts = [
                {name: ops.concat([part[name] for part in parts], axis=0) for name in names}
            ]
        return self._parts[0] if self._parts else {}

    def compute(self) -> float:
        """Return the area; the mean over the classes if there are several."""
        state = self._total()
        if not state:
            return math.nan
        rows = ops.nonzero(state["classes"] >= 0)[0]
        scores, classes = (ops.take(state[name], rows, axis=0) for name in ("scores", "classes"))
        if bool(ops.any(ops.isnan(scores))):
            return math.nan
        width = scores.shape[1]
        positives = [1] if width == 1 else range(width)
        columns = [ops.reshape(ops.take(scores, [at], axis=1), (-1,)) for at in range(width)]
        areas = [_area(x, classes == index) for x, index in zip(columns, positives, strict=True)]
        defined = [area for area in areas if not math.isnan(area)]
        return inputs.divide(sum(defined), len(defined), math.nan)


def _area(scores: Tensor, positive: Tensor) -> float:
    """Return the area by the rank-sum formula; equal scores share their mean rank."""
    count, size = int(ops.sum(positive)), scores.size
    if count in (0, size):
        return math.nan
    ordered = ops.sort(scores)
    sides = [ops.searchsorted(ordered, scores, side=side) for side in ("left", "right")]
    ranks = ops.astype(sides[0], int64) + ops.astype(sides[1], int64)
    twice = int(ops.sum(ops.where(positive, ranks, 0))) + count
    return (twice - count * (count + 1)) / (2 * count * (size - count))
