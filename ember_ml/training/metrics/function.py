"""A function as a metric."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.training.losses.base import reported_weights, spread, wide
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import Values


class FunctionMetric(Metric[float]):
    """Mean of a function of (prediction, target) over all examples.

    The function returns a value for each example, or the mean over a batch. With a keyword
    `sample_weight` it also receives the masks of batches; without, it must return a value for each
    element of the mask. The losses of Ember are such functions.

    Args:
        function: The function.
        name: Name of the metric in logs. Default: the name of the function.

    Example:
        >>> from ember_ml.training.metrics import FunctionMetric
        >>> metric = FunctionMetric(lambda x, y: abs(x - y), name="error")
        >>> metric.update(tensor.array([1.0, 2.0]), tensor.array([1.0, 3.0]))
        >>> metric.compute()
        0.5
    """

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.function = function
        super().__init__(_name_of(function) if name is None else name)
        self._takes_weights = _takes_weights(self.name, function)

    def __deepcopy__(self, memo: dict[int, Any]) -> FunctionMetric:
        copied = copy.copy(self)  # the function may be a method of a model
        copied._state = dict(self._state)
        return copied

    def update(self, prediction: Any, target: Any, mask: TensorLike | None = None) -> None:
        """Add a batch.

        Args:
            prediction: Output of a model.
            target: Expected output.
            mask: Weights of the targets, or True for those that count. Default: all count.
        """
        options = {"sample_weight": mask} if mask is not None and self._takes_weights else {}
        with reported_weights() as weights:
            value = ops.stop_gradient(wide(self.function(prediction, target, **options)))
        if value.ndim:
            total, count = self._elements(value, None if options else mask)
        elif mask is not None and not options:
            raise ArgumentError(
                f"metric {self.name!r}: the batch has a mask, which the function does not use; "
                "return a value for each example, or accept a keyword sample_weight"
            )
        else:
            count = self._weight(value, target, mask, weights)
            total = value * count
        self._accumulate({"sum": total, "count": count})

    def _elements(self, value: Tensor, mask: TensorLike | None) -> tuple[Tensor, Tensor]:
        """Return the weighted sum of the values, and the sum of the weights."""
        if mask is None:
            return ops.sum(value), convert_to_tensor(float(value.size), backend=value.backend)
        weight = spread(self.name, mask, value)
        return ops.sum(ops.where(weight != 0, value * weight, 0.0)), ops.sum(weight)

    def _weight(
        self,
        value: Tensor,
        target: object,
        mask: TensorLike | None,
        weights: list[Tensor | float | None],
    ) -> Tensor:
        """Return the weight of a batch's mean: reported, of the mask, or its examples."""
        weight: TensorLike
        if weights and weights[-1] is not None:
            weight = weights[-1]
        elif mask is not None:
            weight = ops.sum(convert_to_tensor(mask, "float32", backend=value.backend))
        else:
            weight = _examples(target)
        return convert_to_tensor(weight, dtype=value.dtype, backend=value.backend)

    def result(self, values: Values) -> float:
        """Return sum / count."""
        return inputs.divide(values["sum"], values["count"], math.nan)


def _examples(target: object) -> float:
    """Return the number of examples of the first array of a target."""
    for leaf in tree.leaves_of(target):
        shape = leaf.shape if isinstance(leaf, EmberTensor) else getattr(leaf, "shape", ())
        if shape:
            return float(shape[0])
    return 1.0


def _name_of(function: Callable[..., Any]) -> str:
    config = getattr(function, "config", None)
    if config is not None:
        return str(config.component.rpartition("/")[2])
    name = getattr(function, "__name__", type(function).__name__)
    return name if name.isidentifier() else "metric"


def _takes_weights(name: str, function: Callable[..., Any]) -> bool:
    """Return whether a function has a keyword `sample_weight`; it must take two arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False
    try:
        signature.bind(None, None)
    except TypeError:
        raise ArgumentTypeError(
            f"metric {name!r}: a function must accept (prediction, target), not {signature}"
        ) from None
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    return "sample_weight" in signature.parameters or inspect.Parameter.VAR_KEYWORD in kinds
