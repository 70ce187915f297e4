"""Metrics that are means: of values, errors, cosine similarities and log-likelihoods."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.registry import register
from ember_ml.training.losses.base import wide
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State, Values, values


class Average(Metric[float]):
    """Base class of metrics that are the mean over all elements of a function."""

    def elements(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Return the elements to average.

        Args:
            prediction: Predictions, at least in float32.
            target: Targets of the same shape and dtype.
        """
        raise NotImplementedError

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the sum and the number of the elements."""
        name = type(self).__name__
        inputs.same_shape(name, prediction, target)
        x = wide(prediction)
        elements = self.elements(x, ops.astype(target, x.dtype))
        mask = inputs.expand_mask(name, mask, elements)
        return {"sum": inputs.total(elements, mask), "count": inputs.count(elements, mask)}

    def result(self, values: Values) -> float:
        """Return sum / count."""
        return inputs.divide(values["sum"], values["count"], math.nan)


@register("metrics/mse")
class MSE(Average):
    """Mean squared error over all elements."""

    def __init__(self) -> None:
        super().__init__("mse")

    def elements(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Return (prediction - target)^2."""
        return ops.square(prediction - target)


@register("metrics/rmse")
class RMSE(Average):
    """Square root of the mean squared error over all elements."""

    def __init__(self) -> None:
        super().__init__("rmse")

    def elements(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Return (prediction - target)^2."""
        return ops.square(prediction - target)

    def result(self, values: Values) -> float:
        """Return the square root of the mean."""
        return math.sqrt(super().result(values))


@register("metrics/mae")
class MAE(Average):
    """Mean absolute error over all elements."""

    def __init__(self) -> None:
        super().__init__("mae")

    def elements(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Return abs(prediction - target)."""
        return ops.abs(prediction - target)


@register("metrics/cosine_similarity")
class CosineSimilarity(Average):
    """Mean cosine similarity of predictions and targets.

    Args:
        axis: Axis of the vectors. A mask has the shape of the other axes.
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__("cosine_similarity")
        self.axis = axis

    def elements(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Return the cosine similarities."""
        return ops.cosine_similarity(prediction, target, self.axis)


@register("metrics/perplexity")
class Perplexity(Average):
    """Exponential of the mean cross entropy of logits (..., classes) and class indices (...).

    Args:
        ignore_index: Target value to ignore.
    """

    skips_ignored = True

    def __init__(self, ignore_index: int = -100) -> None:
        super().__init__("perplexity")
        self.ignore_index = ignore_index

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the summed cross entropy and the number of valid targets."""
        inputs.check_scores("Perplexity", prediction, target)
        target = inputs.as_classes(target)
        valid = inputs.valid("Perplexity", target, mask, self.ignore_index)
        labels = ops.where(valid, target, self.ignore_index)
        x = wide(prediction)
        total = ops.cross_entropy(x, labels, ignore_index=self.ignore_index, reduction="sum")
        return {"sum": total, "count": ops.sum(valid)}

    def result(self, values: Values) -> float:
        """Return exp(sum / count)."""
        mean = super().result(values)
        return math.inf if mean > 700 else math.exp(mean)


@register("metrics/mean")
class Mean(Average):
    """Weighted mean of values such as losses.

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
        """Sum of the weights so far."""
        return float(values(self._state)["count"]) if self._state else 0.0

    def update(
        self, value: TensorLike, weight: TensorLike = 1.0, mask: TensorLike | None = None
    ) -> None:
        """Add values.

        Args:
            value: Number or tensor of numbers.
            weight: Weight of each value, broadcast to their shape. Default: 1.
            mask: True for values that count. It has the shape of the values or of their leading
                axes. Default: all count.
        """
        x = wide(ops.stop_gradient(convert_to_tensor(value)))
        w = convert_to_tensor(weight, dtype=x.dtype, backend=x.backend)
        counts = None if mask is None else convert_to_tensor(mask, "bool", backend=x.backend)
        counts = inputs.expand_mask("Mean", counts, x)
        weights = ops.broadcast_to(w, x.shape)
        self._accumulate(
            {"sum": inputs.total(x * w, counts), "count": inputs.total(weights, counts)}
        )
