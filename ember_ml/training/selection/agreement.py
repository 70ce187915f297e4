"""Selection by the agreement of several augmented views."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Fraction, Integer, Probability
from ember_ml.registry import register
from ember_ml.training.selection.base import SelectionRule


@register("selections/agreement")
class Agreement(SelectionRule):
    """Selects examples whose augmented views get the same prediction.

    The views are drawn by the pipeline's `augment`. The pseudo-label is the class with the largest
    mean probability.

    Args:
        views: Number of views, at least 2. Default: 5.
        share: Share of the views that must predict the pseudo-label. Default: 1, all views.
        threshold: Mean probability that the pseudo-label must exceed besides. Default: 0.

    Example:
        >>> from ember_ml.training.selection import Agreement
        >>> first, second = [[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.3, 0.7]]
        >>> Agreement(views=2)([first, second]).tolist()
        [True, False]
    """

    def __init__(
        self,
        views: Annotated[Integer, Field(ge=2)] = 5,
        share: Fraction = 1.0,
        threshold: Probability = 0.0,
    ) -> None:
        self.views = views
        self.share = share
        self.threshold = threshold

    def select_views(self, probabilities: Tensor) -> Tensor:
        """Return whether each example is selected."""
        mean = ops.mean(probabilities, axis=0)
        same = ops.argmax(probabilities, axis=-1) == ops.argmax(mean, axis=-1)
        agreeing = ops.sum(same, axis=0, dtype="int64")
        needed = self.share * probabilities.shape[0] - 1e-9  # 0.6 of 5 views are 3
        confident = ops.max(mean, axis=-1) > self.threshold
        return ops.logical_and(agreeing >= needed, confident)
