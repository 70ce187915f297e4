"""Accuracies: the fraction of correct predictions."""

from __future__ import annotations

import math
from typing import Any, Literal

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Real, Size
from ember_ml.registry import register
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State


class Share(Metric):
    """Fraction of the targets that are predicted correctly."""

    def result(self, values: dict[str, Any]) -> float:
        """Return right / count."""
        return float(inputs.divide(values["right"], values["count"], math.nan))


@register("metrics/accuracy")
class Accuracy(Share):
    """Fraction of correctly predicted classes.

    Predictions are scores (..., classes), class indices, or binary scores of the targets' shape.

    Args:
        average: "micro": over all targets. "macro": mean of the accuracies of the classes that
            occur among the targets (balanced accuracy).
        num_classes: Number of classes; required for "macro" with class indices as predictions.
        ignore_index: Targets with this value are ignored.
        threshold: A binary score above it predicts class 1. Use 0 for logits.

    Example:
        >>> metric = ember_ml.training.metrics.Accuracy()
        >>> metric.update(tensor.array([[2.0, 1.0], [0.0, 3.0]]), tensor.array([0, 0]))
        >>> metric.compute()
        0.5
    """

    def __init__(
        self,
        average: Literal["micro", "macro"] = "micro",
        num_classes: Size | None = None,
        ignore_index: int = -100,
        threshold: Real = 0.0,
    ) -> None:
        super().__init__("accuracy" if average == "micro" else f"accuracy_{average}")
        self.average = average
        self.num_classes = num_classes
        self.ignore_index = ignore_index
        self.threshold = threshold

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the number of correct predictions and of targets, per class for "macro"."""
        classes = inputs.as_classes(target)
        counts = inputs.valid("Accuracy", classes, mask, self.ignore_index)
        chosen = inputs.decide("Accuracy", prediction, target, self.threshold)
        right = ops.logical_and(chosen == classes, counts)
        if self.average == "micro":
            return {"right": ops.sum(right), "count": ops.sum(counts)}
        size = inputs.class_count("Accuracy", prediction, target, self.num_classes)
        safe = ops.where(counts, classes, 0)
        return {
            "right": inputs.tally(safe, right, size),
            "count": inputs.tally(safe, counts, size),
        }

    def result(self, values: dict[str, Any]) -> float:
        """Return right / count, or its mean over the classes."""
        if self.average == "micro":
            return super().result(values)
        pairs = zip(values["right"], values["count"], strict=True)
        shares = [right / count for right, count in pairs if count]
        return float(inputs.divide(sum(shares), len(shares), math.nan))


@register("metrics/binary_accuracy")
class BinaryAccuracy(Share):
    """Fraction of scores on the correct side of a threshold, for targets of 0 and 1.

    Args:
        threshold: A score above it predicts 1. Use 0 for logits, 0.5 for probabilities.
    """

    def __init__(self, threshold: Real = 0.0) -> None:
        super().__init__("binary_accuracy")
        self.threshold = threshold

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the number of correct predictions and of targets."""
        inputs.same_shape("BinaryAccuracy", prediction, target)
        mask = inputs.expand_mask("BinaryAccuracy", mask, target)
        right = (prediction > self.threshold) == (inputs.as_classes(target) > 0)
        return {"right": inputs.total(right, mask), "count": inputs.count(target, mask)}


@register("metrics/top_k_accuracy")
class TopKAccuracy(Share):
    """Fraction of targets among the k classes with the highest scores.

    Ties are resolved in favor of the lower class index, as in `argmax`.

    Args:
        k: Number of classes with the highest scores to consider.
        ignore_index: Targets with this value are ignored.
    """

    def __init__(self, k: Size = 5, ignore_index: int = -100) -> None:
        super().__init__(f"top_{k}_accuracy")
        self.k = k
        self.ignore_index = ignore_index

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the number of correct predictions and of targets."""
        inputs.check_scores("TopKAccuracy", prediction, target)
        target = inputs.as_classes(target)
        counts = inputs.valid("TopKAccuracy", target, mask, self.ignore_index)
        safe = ops.expand_dims(ops.where(counts, target, 0), -1)
        score = ops.take_along_axis(prediction, safe, axis=-1)
        place = ops.cumulative_sum(ops.ones_like(prediction, dtype=safe.dtype), axis=-1) - 1
        ahead = ops.logical_and(prediction == score, place < safe)
        rank = ops.sum(ops.logical_or(prediction > score, ahead), axis=-1)
        in_top = ops.logical_and(rank < self.k, ops.squeeze(score == score, axis=-1))  # no NaN
        return {"right": ops.sum(ops.logical_and(in_top, counts)), "count": ops.sum(counts)}
