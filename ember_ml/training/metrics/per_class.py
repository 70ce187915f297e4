"""Precision, recall and F1: scores from the counts of each class."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Real, Size
from ember_ml.registry import register
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State, Values


class ClassScore(Metric[float | list[float]]):
    """Base class of metrics that score each class and average the scores.

    A score is 0 where its denominator is 0.

    Args:
        average: "macro" is the mean over the classes that occur, "weighted" the mean weighted by
            the number of targets of each class, "micro" sums the counts of all classes first,
            "binary" is the score of class 1, and "none" returns the scores of all classes.
        num_classes: Number of classes; required if the predictions are class indices.
        ignore_index: Target value to ignore.
        threshold: Binary scores above it predict class 1; 0 fits logits.
    """

    base: ClassVar[str] = ""
    skips_ignored = True

    def __init__(
        self,
        average: Literal["micro", "macro", "weighted", "binary", "none"] = "macro",
        num_classes: Size | None = None,
        ignore_index: int = -100,
        threshold: Real = 0.0,
    ) -> None:
        super().__init__(self.base if average == "macro" else f"{self.base}_{average}")
        self.average = average
        self.num_classes = num_classes
        self.ignore_index = ignore_index
        self.threshold = threshold

    def score(self, right: int, predicted: int, actual: int) -> float:
        """Return the score of a class.

        Args:
            right: Number of correct predictions of the class (true positives).
            predicted: Number of predictions of the class.
            actual: Number of targets of the class.
        """
        raise NotImplementedError

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the counts of each class."""
        name = type(self).__name__
        labels, predicted, valid = inputs.classify(
            name, prediction, target, mask, self.ignore_index, self.threshold
        )
        num_classes = 2 if self.average == "binary" else self.num_classes
        size = inputs.class_count(name, prediction, target, num_classes)
        return {
            "right": inputs.tally(labels, ops.logical_and(predicted == labels, valid), size),
            "predicted": inputs.tally(predicted, valid, size),
            "actual": inputs.tally(labels, valid, size),
        }

    def empty(self) -> float | list[float]:
        """Return NaN, or [] if `average` is "none"."""
        return [] if self.average == "none" else math.nan

    def result(self, values: Values) -> float | list[float]:
        """Return the average of the scores, or all of them."""
        rows = list(zip(values["right"], values["predicted"], values["actual"], strict=True))
        if self.average == "micro":
            right, predicted, actual = (sum(column) for column in zip(*rows, strict=True))
            return self.score(right, predicted, actual)
        scores = [self.score(*row) for row in rows]
        if self.average == "none":
            return scores
        if self.average == "binary":
            return scores[1]
        weights = [
            actual if self.average == "weighted" else int(predicted + actual > 0)
            for _, predicted, actual in rows
        ]
        total = sum(weight * score for weight, score in zip(weights, scores, strict=True))
        return inputs.divide(total, sum(weights), math.nan)


@register("metrics/precision")
class Precision(ClassScore):
    """Fraction of the predictions of a class that are correct."""

    base = "precision"

    def score(self, right: int, predicted: int, actual: int) -> float:
        """Return right / predicted."""
        return inputs.divide(right, predicted)


@register("metrics/recall")
class Recall(ClassScore):
    """Fraction of the targets of a class that are predicted correctly."""

    base = "recall"

    def score(self, right: int, predicted: int, actual: int) -> float:
        """Return right / actual."""
        return inputs.divide(right, actual)


@register("metrics/f1")
class F1(ClassScore):
    """Harmonic mean of precision and recall.

    Example:
        >>> metric = ember_ml.training.metrics.F1(average="binary")
        >>> metric.update(tensor.array([1, 1, 0, 1]), tensor.array([1, 0, 0, 1]))
        >>> metric.compute()
        0.8
    """

    base = "f1"

    def score(self, right: int, predicted: int, actual: int) -> float:
        """Return 2 right / (predicted + actual)."""
        return inputs.divide(2 * right, predicted + actual)
