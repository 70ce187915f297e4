"""Selection of the most confident predictions."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Probability, Size
from ember_ml.registry import register
from ember_ml.training.selection.base import SelectionRule


@register("selections/top_k")
class TopK(SelectionRule):
    """Selects the `k` most confident predictions of each class, or of all classes together.

    With `per_class=False`, the same examples as scikit-learn's
    `SelfTrainingClassifier(criterion="k_best")`. If fewer examples remain, all are selected.

    Args:
        k: Number of predictions to select.
        per_class: Whether `k` counts for each predicted class. Default: True, so that no class
            dominates.
        threshold: Probability that a prediction must reach besides. Default: 0.

    Example:
        >>> from ember_ml.training.selection import TopK
        >>> probabilities = [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]]
        >>> TopK(1)(probabilities).tolist(), TopK(2, per_class=False)(probabilities).tolist()
        ([True, False, True], [True, True, False])
    """

    def __init__(self, k: Size, per_class: bool = True, threshold: Probability = 0.0) -> None:
        self.k = k
        self.per_class = per_class
        self.threshold = threshold

    def select(self, probabilities: Tensor) -> Tensor:
        """Return whether each example is selected."""
        confidence = ops.max(probabilities, axis=-1)
        order = ops.argsort(confidence, descending=True)
        rank = ops.argsort(order)
        if self.per_class:
            rank = self._rank_in_class(probabilities, order, rank)
        return ops.logical_and(rank < self.k, confidence >= self.threshold)

    def _rank_in_class(self, probabilities: Tensor, order: Tensor, rank: Tensor) -> Tensor:
        """Return the number of more confident predictions of the same class."""
        labels = ops.argmax(probabilities, axis=-1)
        members = ops.one_hot(ops.take(labels, order), probabilities.shape[-1], dtype="int64")
        before = ops.cumsum(members, axis=0) - members
        return ops.take(ops.sum(before * members, axis=-1), rank)

    def check(self, pool: int, classes: int) -> None:
        """Raise an ArgumentError if `k` is larger than the pool.

        Args:
            pool: Number of unlabeled examples.
            classes: Number of classes.
        """
        if self.k > pool:
            raise ArgumentError(
                f"TopK: k ({self.k}) must be at most the number of unlabeled examples ({pool})"
            )
