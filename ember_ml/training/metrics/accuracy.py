"""Accuracy: the fraction of correct predictions."""

from __future__ import annotations

import math
from typing import Literal

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Real, Size
from ember_ml.registry import register
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State, Values


class Fraction(Metric[float]):
    """Base class of metrics that are the fraction of correct predictions."""

    def result(self, values: Values) -> float:
        """Return right / count."""
        return inputs.divide(values["right"], values["count"], math.nan)


@register("metrics/accuracy")
class Accuracy(Fraction):
    """Fraction of correctly predicted classes.

    Predictions are scores (..., classes), class indices, or binary scores of the targets' shape.

    Args:
        average: "micro" averages over all targets; "macro" over the accuracies of the classes
            that occur among the targets (balanced accuracy).
        num_classes: Number of classes; "macro" needs it if the predictions are class indices.
        ignore_index: Target value to ignore.
        threshold: Binary scores above it predict class 1; 0 fits logits.

    Example:
        >>> metric = ember_ml.training.metrics.Accuracy()
        >>> metric.update(tensor.array([[2.0, 1.0], [0.0, 3.0]]), tensor.array([0, 0]))
        >>> metric.compute()
        0.5
    """

    skips_ignored = True

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
        """Return the numbers of correct and of all targets, per class for a macro average."""
        labels, predicted, valid = inputs.classify(
            "Accuracy", prediction, target, mask, self.ignore_index, self.threshold
        )
        right = ops.logical_and(predicted == labels, valid)
        if self.average == "micro":
            return {"right": ops.sum(right), "count": ops.sum(valid)}
        size = inputs.class_count("Accuracy", prediction, target, self.num_classes)
        return {
            "right": inputs.tally(labels, right, size),
            "count": inputs.tally(labels, valid, size),
        }

    def result(self, values: Values) -> float:
        """Return right / count, or its mean over the classes."""
        if self.average == "micro":
            return super().result(values)
        pairs = zip(values["right"], values["count"], strict=True)
        accuracies = [right / count for right, count in pairs if count]
        return inputs.divide(sum(accuracies), len(accuracies), math.nan)


@register("metrics/binary_accuracy")
class BinaryAccuracy(Fraction):
    """Fraction of scores on the correct side of a threshold, for targets of 0 and 1.

    Args:
        threshold: Scores above it predict 1; 0 fits logits, 0.5 probabilities.
    """

    def __init__(self, threshold: Real = 0.0) -> None:
        super().__init__("binary_accuracy")
        self.threshold = threshold

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the numbers of correct and of all targets."""
        inputs.same_shape("BinaryAccuracy", prediction, target)
        mask = inputs.expand_mask("BinaryAccuracy", mask, target)
        right = (prediction > self.threshold) == (inputs.as_classes(target) > 0)
        return {"right": inputs.total(right, mask), "count": inputs.count(target, mask)}


@register("metrics/top_k_accuracy")
class TopKAccuracy(Fraction):
    """Fraction of targets among the k classes with the highest scores.

    Among classes with equal scores the first ranks highest, as in `argmax`.

    Args:
        k: Number of classes to consider.
        ignore_index: Target value to ignore.
    """

    skips_ignored = True

    def __init__(self, k: Size = 5, ignore_index: int = -100) -> None:
        super().__init__(f"top_{k}_accuracy")
        self.k = k
        self.ignore_index = ignore_index

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the numbers of correct and of all targets."""
        inputs.check_scores("TopKAccuracy", prediction, target)
        target = inputs.as_classes(target)
        valid = inputs.valid("TopKAccuracy", target, mask, self.ignore_index)
        labels = ops.expand_dims(ops.where(valid, target, 0), -1)
        score = ops.take_along_axis(prediction, labels, axis=-1)
        classes = ops.cumulative_sum(ops.ones_like(prediction, dtype=labels.dtype), axis=-1) - 1
        ahead = ops.logical_and(prediction == score, classes < labels)
        rank = ops.sum(ops.logical_or(prediction > score, ahead), axis=-1)
        right = ops.logical_and(rank < self.k, ops.squeeze(score == score, axis=-1))  # not NaN
        return {"right": ops.sum(ops.logical_and(right, valid)), "count": ops.sum(valid)}
