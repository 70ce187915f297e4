"""Means: of values, of errors, of cosines, of log-likelihoods."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.registry import register
from ember_ml.training.losses.reduction import wide
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State, values


class Average(Metric):
    """The mean over all elements of something that `elements` gives."""

    def elements(self, prediction: Tensor, target: Tensor) -> Tensor:
        """What is averaged."""
        raise NotImplementedError

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """The sum and the count."""
        name = type(self).__name__
        inputs.same_shape(name, prediction, target)
        x = wide(prediction)
        found = self.elements(x, ops.astype(target, x.dtype))
        mask = inputs.expand_mask(name, mask, found)
        return {"sum": inputs.total(found, mask), "count": inputs.count(found, mask)}

    def result(self, values: dict[str, Any]) -> float:
        """sum / count."""
        return float(inputs.divide(values["sum"], values["count"], math.nan))


@register("metrics/mse")
class MSE(Average):
    """The mean squared error over all elements."""

    def __init__(self) -> None:
        super().__init__("mse")

    def elements(self, prediction: Tensor, target: Tensor) -> Tensor:
        """(prediction - target)^2."""
        return ops.square(prediction - target)


@register("metrics/rmse")
class RMSE(Average):
    """The root of the mean squared error over all elements."""

    def __init__(self) -> None:
        super().__init__("rmse")

    def elements(self, prediction: Tensor, target: Tensor) -> Tensor:
        """(prediction - target)^2."""
        return ops.square(prediction - target)

    def result(self, values: dict[str, Any]) -> float:
        """The root of the mean."""
        return math.sqrt(super().result(values))


@register("metrics/mae")
class MAE(Average):
    """The mean absolute error over all elements."""

    def __init__(self) -> None:
        super().__init__("mae")

    def elements(self, prediction: Tensor, target: Tensor) -> Tensor:
        """abs(prediction - target)."""
        return ops.abs(prediction - target)


@register("metrics/cosine_similarity")
class CosineSimilarity(Average):
    """The mean cosine of the angle between prediction and target.

    Args:
        axis: the axis of the vectors. A mask is of the shape of the others.
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__("cosine_similarity")
        self.axis = axis

    def elements(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The cosines."""
        return ops.cosine_similarity(prediction, target, self.axis)


@register("metrics/perplexity")
class Perplexity(Average):
    """exp of the mean cross entropy of logits (..., classes) with class numbers (...).

    Args:
        ignore_index: targets of this value do not count.
    """

    def __init__(self, ignore_index: int = -100) -> None:
        super().__init__("perplexity")
        self.ignore_index = ignore_index

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """The cross entropy of the batch and the number of its targets."""
        inputs.check_scores("Perplexity", prediction, target)
        target = inputs.as_classes(target)
        counts = inputs.valid("Perplexity", target, mask, self.ignore_index)
        safe = ops.where(counts, target, self.ignore_index)
        x = wide(prediction)
        total = ops.cross_entropy(x, safe, ignore_index=self.ignore_index, reduction="sum")
        return {"sum": total, "count": ops.sum(counts)}

    def result(self, values: dict[str, Any]) -> float:
        """exp(sum / count)."""
        mean = super().result(values)
        return math.inf if mean > 700 else math.exp(mean)


@register("metrics/mean")
class Mean(Average):
    """The weighted mean of values, such as losses.

    Example:
        >>> metric = ember_ml.training.metrics.Mean()
        >>> metric.update(1.0, weight=3)
        >>> metric.update(tensor.array(5.0))
        >>> metric.compute()
        2.0
    """

    def __init__(self) -> None:
        super().__init__("mean")

    @property
    def count(self) -> float:
        """The sum of the weights so far."""
        return float(values(self._state)["count"]) if self._state else 0.0

    def update(
        self, value: TensorLike, weight: TensorLike = 1.0, mask: TensorLike | None = None
    ) -> None:
        """Take values into account.

        Args:
            value: a number, or a tensor, each of whose elements counts.
            weight: of each; broadcasts.
            mask: which values count; of their shape, or of the shape of their leading axes.
        """
        x = wide(ops.stop_gradient(convert_to_tensor(value)))
        w = convert_to_tensor(weight, dtype=x.dtype, backend=x.backend)
        counts = None if mask is None else convert_to_tensor(mask, "bool", backend=x.backend)
        counts = inputs.expand_mask("Mean", counts, x)
        share = ops.broadcast_to(w, x.shape)
        sums = {"sum": inputs.total(x * w, counts), "count": inputs.total(share, counts)}
        self._take(sums)
