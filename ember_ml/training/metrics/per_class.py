"""Precision, recall and F1, from counts per class."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Real, Size
from ember_ml.registry import register
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State


class ClassScore(Metric):
    """Score per class, from the numbers of its correct predictions, predictions and targets.

    The score is 0 where its denominator, such as the number of predictions, is 0.

    Args:
        average: "macro": mean over the classes that occur. "weighted": mean weighted by the number
            of targets. "micro": score of the counts summed over all classes. "binary": score of
            class 1. "none": list of the scores of all classes.
        num_classes: Number of classes; required if the predictions are class indices.
        ignore_index: Targets with this value are ignored.
        threshold: A binary score above it predicts class 1. Use 0 for logits.
    """

    base: ClassVar[str] = ""

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
            right: Number of correct predictions of the class.
            predicted: Number of predictions of the class.
            actual: Number of targets of the class.
        """
        raise NotImplementedError

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the counts per class."""
        name = type(self).__name__
        classes = inputs.as_classes(target)
        counts = inputs.valid(name, classes, mask, self.ignore_index)
        chosen = inputs.decide(name, prediction, target, self.threshold)
        given = 2 if self.average == "binary" else self.num_classes
        size = inputs.class_count(name, prediction, target, given)
        safe = ops.where(counts, classes, 0)
        return {
            "right": inputs.tally(safe, ops.logical_and(chosen == safe, counts), size),
            "predicted": inputs.tally(chosen, counts, size),
            "actual": inputs.tally(safe, counts, size),
        }

    def empty(self) -> Any:
        """Return NaN, or an empty list for "none"."""
        return [] if self.average == "none" else math.nan

    def result(self, values: dict[str, Any]) -> Any:
        """Return the average of the scores."""
        rows = list(zip(values["right"], values["predicted"], values["actual"], strict=True))
        if self.average == "micro":
            right, predicted, actual = (sum(column) for column in zip(*rows, strict=True))
            return self.score(right, predicted, actual)
        scores = [self.score(*row) for row in rows]
        if self.average == "none":
            return scores
        if self.average == "binary":
            return scores[1]
        shares = [
            actual if self.average == "weighted" else int(predicted + actual > 0)
            for _, predicted, actual in rows
        ]
        weighed = sum(share * score for share, score in zip(shares, scores, strict=True))
        return float(inputs.divide(weighed, sum(shares), math.nan))


@register("metrics/precision")
class Precision(ClassScore):
    """Fraction of the predictions of a class that are correct."""

    base = "precision"

    def score(self, right: int, predicted: int, actual: int) -> float:
        """Return right / predicted."""
        return float(inputs.divide(right, predicted))


@register("metrics/recall")
class Recall(ClassScore):
    """Fraction of the examples of a class that are predicted correctly."""

    base = "recall"

    def score(self, right: int, predicted: int, actual: int) -> float:
        """Return right / actual."""
        return float(inputs.divide(right, actual))


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
        return float(inputs.divide(2 * right, predicted + actual))
