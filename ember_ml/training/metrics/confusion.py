"""Confusion matrix."""

from __future__ import annotations

from typing import Any, Literal

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Real, Size
from ember_ml.registry import register
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State


@register("metrics/confusion_matrix")
class ConfusionMatrix(Metric):
    """Number of examples by true class (row) and predicted class (column), as nested lists.

    Args:
        num_classes: Number of classes; required if the predictions are class indices.
        ignore_index: Targets with this value are ignored.
        threshold: A binary score above it predicts class 1. Use 0 for logits.
        normalize: "true": fractions of each row. "predicted": fractions of each column. "all":
            fractions of all examples. None: counts.

    Example:
        >>> metric = ember_ml.training.metrics.ConfusionMatrix(num_classes=2)
        >>> metric.update(tensor.array([1, 1, 0]), tensor.array([1, 0, 0]))
        >>> metric.compute()
        [[1, 1], [0, 1]]
    """

    def __init__(
        self,
        num_classes: Size | None = None,
        ignore_index: int = -100,
        threshold: Real = 0.0,
        normalize: Literal["true", "predicted", "all"] | None = None,
    ) -> None:
        super().__init__("confusion_matrix")
        self.num_classes = num_classes
        self.ignore_index = ignore_index
        self.threshold = threshold
        self.normalize = normalize

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the confusion matrix of a batch."""
        name = "ConfusionMatrix"
        classes = inputs.as_classes(target)
        counts = inputs.valid(name, classes, mask, self.ignore_index)
        chosen = inputs.decide(name, prediction, target, self.threshold)
        size = inputs.class_count(name, prediction, target, self.num_classes)
        safe = ops.where(counts, classes, 0)
        cells = inputs.tally(safe * size + chosen, counts, size * size)
        return {"matrix": ops.reshape(cells, (size, size))}

    def empty(self) -> Any:
        """Return a matrix without rows."""
        return []

    def result(self, values: dict[str, Any]) -> Any:
        """Return the rows of the matrix."""
        rows: list[list[int]] = values["matrix"]
        if self.normalize is None:
            return rows
        columns = [sum(column) for column in zip(*rows, strict=True)]
        everything = sum(columns)
        if self.normalize == "predicted":
            return [
                [inputs.divide(x, y) for x, y in zip(row, columns, strict=True)] for row in rows
            ]
        totals = [sum(row) if self.normalize == "true" else everything for row in rows]
        return [[inputs.divide(x, y) for x in row] for row, y in zip(rows, totals, strict=True)]
