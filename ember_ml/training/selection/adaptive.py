"""Selection with thresholds that adapt to the confidence of the model in each class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Below1, Probability
from ember_ml.registry import register
from ember_ml.training.selection.base import SelectionRule


@register("selections/adaptive")
class Adaptive(SelectionRule):
    r"""Selects predictions above a threshold for each class, which follows the model's confidence.

    .. math:: \tau_c = \tau \, \frac{\bar p_c}{\max_j \bar p_j}

    :math:`\tau` is the mean of the largest probabilities and :math:`\bar p` the mean of the
    probabilities. On a pool, both are means over the pool. On training batches, both are moving
    averages that start at 1 / classes, so that early training uses many pseudo-labels.

    Args:
        decay: Decay rate of the moving averages over batches. Default: 0.999.
        minimum: Lower bound of the thresholds. Default: 0.

    Attributes:
        thresholds: Threshold of each class at the last selection; None before.

    Reference: Wang et al., "FreeMatch: Self-adaptive Thresholding for Semi-supervised Learning",
    2023.

    Example:
        >>> from ember_ml.training.selection import Adaptive
        >>> Adaptive()([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4], [0.4, 0.6]]).tolist()
        [True, True, False, True]
    """

    def __init__(self, decay: Below1 = 0.999, minimum: Probability = 0.0) -> None:
        self.decay = decay
        self.minimum = minimum
        self.thresholds: list[float] | None = None
        self._confidence: float | None = None
        self._means: list[float] = []

    def select(self, probabilities: Tensor) -> Tensor:
        """Return whether each example is selected, with thresholds of these probabilities."""
        confidence, means = _means(probabilities)
        return self._select(probabilities, confidence, means)

    def select_batch(self, probabilities: TensorLike) -> Tensor:
        """Update the moving averages, and return whether each example is selected.

        Args:
            probabilities: Probabilities of shape (examples, classes) or (views, examples, classes).
        """
        x = ops.mean(self._checked(probabilities), axis=0)
        uniform = 1.0 / x.shape[-1]
        old = uniform if self._confidence is None else self._confidence
        old_means = self._means or [uniform] * x.shape[-1]
        confidence, means = _means(x)
        self._confidence = self._mixed(old, confidence)
        self._means = [self._mixed(*pair) for pair in zip(old_means, means, strict=True)]
        return self._select(x, self._confidence, self._means)

    def _mixed(self, old: float, new: float) -> float:
        return self.decay * old + (1.0 - self.decay) * new

    def _select(self, x: Tensor, confidence: float, means: list[float]) -> Tensor:
        largest = max(means)
        self.thresholds = [max(self.minimum, confidence * mean / largest) for mean in means]
        thresholds = convert_to_tensor(self.thresholds, dtype=x.dtype, backend=x.backend)
        own = ops.take(thresholds, ops.argmax(x, axis=-1))
        return ops.max(x, axis=-1) >= own

    def state_dict(self) -> dict[str, Any]:
        """Return the moving averages."""
        return {"confidence": self._confidence, "means": self._means}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore moving averages.

        Args:
            state: Result of `state_dict`.
        """
        self._confidence, self._means = state["confidence"], list(state["means"])


def _means(probabilities: Tensor) -> tuple[float, list[float]]:
    """Return the mean of the largest probabilities, and of the probabilities of each class."""
    confidence = ops.mean(ops.max(probabilities, axis=-1))
    return float(confidence), ops.mean(probabilities, axis=0).tolist()
