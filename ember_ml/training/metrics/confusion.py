"""Confusion matrix."""

from __future__ import annotations

from typing import Literal

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Real, Size
from ember_ml.registry import register
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State, Values


@register("metrics/confusion_matrix")
class ConfusionMatrix(Metric[list[list[float]]]):
    """Counts of each true class (row) and predicted class (column), as nested lists.

    Args:
        num_classes: Number of classes; required if the predictions are class indices.
        ignore_index: Target value to ignore.
        threshold: Binary scores above it predict class 1; 0 fits logits.
        normalize: None returns counts; "true" divides by the sum of the row, "predicted" by the
            sum of the column, "all" by the total.

    Example:
        >>> metric = ember_ml.training.metrics.ConfusionMatrix(num_classes=2)
        >>> metric.update(tensor.array([1, 1, 0]), tensor.array([1, 0, 0]))
        >>> metric.compute()
        [[1, 1], [0, 1]]
    """

    skips_ignored = True

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
        """Return the matrix of a batch."""
        name = "ConfusionMatrix"
        labels, predicted, valid = inputs.classify(
            name, prediction, target, mask, self.ignore_index, self.threshold
        )
        size = inputs.class_count(name, prediction, target, self.num_classes)
        cells = inputs.tally(labels * size + predicted, valid, size * size)
        return {"matrix": ops.reshape(cells, (size, size))}

    def empty(self) -> list[list[float]]:
        """Return a matrix without rows."""
        return []

    def result(self, values: Values) -> list[list[float]]:
        """Return the rows, normalized if requested."""
        rows: list[list[float]] = values["matrix"]
        if self.normalize is None:
            return rows
        columns = [sum(column) for column in zip(*rows, strict=True)]
        if self.normalize == "predicted":
            return [
                [inputs.divide(x, y) for x, y in zip(row, columns, strict=True)] for row in rows
            ]
        totals = [sum(row) if self.normalize == "true" else sum(columns) for row in rows]
        return [[inputs.divide(x, y) for x in row] for row, y in zip(rows, totals, strict=True)]
