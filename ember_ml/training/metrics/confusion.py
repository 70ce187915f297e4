"""The confusion matrix."""

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
    """How often each class (the row) is taken for each (the column), as nested lists.

    Args:
        num_classes: how many there are, if the predictions are class numbers.
        ignore_index: targets of this value do not count.
        threshold: above it a score means the second of two sides: 0 for logits.
        normalize: None for counts, or shares of the "true" class (the row), of the "predicted"
            class (the column) or of "all".

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
        """The counts of a batch."""
        name = "ConfusionMatrix"
        classes = inputs.as_classes(target)
        counts = inputs.valid(name, classes, mask, self.ignore_index)
        chosen = inputs.decide(name, prediction, target, self.threshold)
        size = inputs.class_count(name, prediction, target, self.num_classes)
        safe = ops.where(counts, classes, 0)
        cells = inputs.tally(safe * size + chosen, counts, size * size)
        return {"matrix": ops.reshape(cells, (size, size))}

    def empty(self) -> Any:
        """No rows."""
        return []

    def result(self, values: dict[str, Any]) -> Any:
        """The rows."""
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
