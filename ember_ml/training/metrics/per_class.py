"""Precision, recall and what belongs to them: counts of each class."""

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
    """A score of each class, from how often it is right, predicted and a target.

    A class without predictions (or targets) that would divide by zero scores 0.

    Args:
        average: "macro" is the mean over the classes that occur, "weighted" the same by how often
            each is a target, "micro" counts all classes as one, "binary" is the score of class 1,
            and "none" a list of the scores of all classes.
        num_classes: how many there are, if the predictions are class numbers.
        ignore_index: targets of this value do not count.
        threshold: above it a score means the second of two sides: 0 for logits.
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
        """The score of a class that is right, predicted and actual so often."""
        raise NotImplementedError

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """The counts of each class."""
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
        """NaN, or no score at all."""
        return [] if self.average == "none" else math.nan

    def result(self, values: dict[str, Any]) -> Any:
        """The scores averaged."""
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
    """The share of the predictions of a class that are right."""

    base = "precision"

    def score(self, right: int, predicted: int, actual: int) -> float:
        """right / predicted."""
        return float(inputs.divide(right, predicted))


@register("metrics/recall")
class Recall(ClassScore):
    """The share of the examples of a class that are found."""

    base = "recall"

    def score(self, right: int, predicted: int, actual: int) -> float:
        """right / actual."""
        return float(inputs.divide(right, actual))


@register("metrics/f1")
class F1(ClassScore):
    """The harmonic mean of precision and recall.

    Example:
        >>> metric = ember_ml.training.metrics.F1(average="binary")
        >>> metric.update(tensor.array([1, 1, 0, 1]), tensor.array([1, 0, 0, 1]))
        >>> metric.compute()
        0.8
    """

    base = "f1"

    def score(self, right: int, predicted: int, actual: int) -> float:
        """2 right / (predicted + actual)."""
        return float(inputs.divide(2 * right, predicted + actual))
