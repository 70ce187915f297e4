"""Selection rules that compare the confidence of a prediction with a constant."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Probability
from ember_ml.registry import register
from ember_ml.training.selection.base import SelectionRule


@register("selections/threshold")
class Threshold(SelectionRule):
    """Selects predictions whose largest probability is above a threshold.

    The same examples as scikit-learn's `SelfTrainingClassifier(criterion="threshold")`.

    Args:
        threshold: Probability above which a prediction is selected. Default: 0.9.

    Example:
        >>> from ember_ml.training.selection import Threshold
        >>> Threshold(0.8)([[0.9, 0.1], [0.4, 0.6]]).tolist()
        [True, False]
    """

    def __init__(self, threshold: Probability = 0.9) -> None:
        self.threshold = threshold

    def select(self, probabilities: Tensor) -> Tensor:
        """Return whether each example is selected."""
        return ops.max(probabilities, axis=-1) > self.threshold


@register("selections/margin")
class Margin(SelectionRule):
    """Selects predictions whose two largest probabilities differ by more than a margin.

    Args:
        margin: Difference above which a prediction is selected. Default: 0.5.

    Example:
        >>> from ember_ml.training.selection import Margin
        >>> Margin(0.3)([[0.5, 0.4, 0.1], [0.6, 0.2, 0.2]]).tolist()
        [False, True]
    """

    def __init__(self, margin: Probability = 0.5) -> None:
        self.margin = margin

    def select(self, probabilities: Tensor) -> Tensor:
        """Return whether each example is selected."""
        ordered = ops.sort(probabilities, axis=-1)
        return ordered[:, -1] - ordered[:, -2] > self.margin


@register("selections/entropy")
class Entropy(SelectionRule):
    """Selects predictions whose entropy is below a maximum.

    The entropy is divided by the logarithm of the number of classes, so it is between 0 (certain)
    and 1 (uniform).

    Args:
        maximum: Normalized entropy below which a prediction is selected. Default: 0.3.

    Example:
        >>> from ember_ml.training.selection import Entropy
        >>> Entropy(0.5)([[0.99, 0.01], [0.6, 0.4]]).tolist()
        [True, False]
    """

    def __init__(self, maximum: Probability = 0.3) -> None:
        self.maximum = maximum

    def select(self, probabilities: Tensor) -> Tensor:
        """Return whether each example is selected."""
        positive = probabilities > 0
        logs = ops.log(ops.where(positive, probabilities, 1.0))  # p log p is 0 at p = 0
        entropy = -ops.sum(probabilities * logs, axis=-1)
        return entropy < self.maximum * math.log(probabilities.shape[-1])
