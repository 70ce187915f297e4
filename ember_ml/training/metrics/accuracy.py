"""How many predictions are right."""

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
    """Right ones among those that count."""

    def result(self, values: dict[str, Any]) -> float:
        """right / count."""
        return float(inputs.divide(values["right"], values["count"], math.nan))


@register("metrics/accuracy")
class Accuracy(Share):
    """The share of right classes.

    Predictions are scores (..., classes), class numbers, or scores of one of two sides.

    Args:
        average: "micro" over all targets; "macro" is the mean over the classes that occur among
            the targets of the share in each (the balanced accuracy).
        num_classes: for "macro", if the predictions are class numbers.
        ignore_index: targets of this value do not count.
        threshold: above it a score means the second of two sides: 0 for logits.

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
        """The right ones and all, of each class for a macro average."""
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
        """right / count, or the mean of it."""
        if self.average == "micro":
            return super().result(values)
        pairs = zip(values["right"], values["count"], strict=True)
        shares = [right / count for right, count in pairs if count]
        return float(inputs.divide(sum(shares), len(shares), math.nan))


@register("metrics/binary_accuracy")
class BinaryAccuracy(Share):
    """The share of scores on the right side of a threshold, for targets of 0 and 1.

    Args:
        threshold: above it a score means 1; 0 is right for logits, 0.5 for probabilities.
    """

    def __init__(self, threshold: Real = 0.0) -> None:
        super().__init__("binary_accuracy")
        self.threshold = threshold

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """The right ones and all."""
        inputs.same_shape("BinaryAccuracy", prediction, target)
        mask = inputs.expand_mask("BinaryAccuracy", mask, target)
        right = (prediction > self.threshold) == (inputs.as_classes(target) > 0)
        return {"right": inputs.total(right, mask), "count": inputs.count(target, mask)}


@register("metrics/top_k_accuracy")
class TopKAccuracy(Share):
    """The share of targets among the k classes with the best scores.

    Of classes with equal scores the first is the better one, as in `argmax`.

    Args:
        k: how many classes are looked at.
        ignore_index: targets of this value do not count.
    """

    def __init__(self, k: Size = 5, ignore_index: int = -100) -> None:
        super().__init__(f"top_{k}_accuracy")
        self.k = k
        self.ignore_index = ignore_index

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """The right ones and all."""
        inputs.check_scores("TopKAccuracy", prediction, target)
        target = inputs.as_classes(target)
        counts = inputs.valid("TopKAccuracy", target, mask, self.ignore_index)
        safe = ops.expand_dims(ops.where(counts, target, 0), -1)
        score = ops.take_along_axis(prediction, safe, axis=-1)
        place = ops.cumulative_sum(ops.ones_like(prediction, dtype=safe.dtype), axis=-1) - 1
        ahead = ops.logical_and(prediction == score, place < safe)
        rank = ops.sum(ops.logical_or(prediction > score, ahead), axis=-1)
        found = ops.logical_and(rank < self.k, ops.squeeze(score == score, axis=-1))  # no NaN
        return {"right": ops.sum(ops.logical_and(found, counts)), "count": ops.sum(counts)}
