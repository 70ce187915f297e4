"""What a loss is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.registry import build


class Loss:
    """How wrong a prediction is: `loss(prediction, target)`, a scalar to make small.

    Half precision is computed in float32, and the loss is float32 then.

    Args:
        reduction: "mean", "sum", or "none" for the losses of all elements.

    Subclasses name the `function` and put what it takes beside the two tensors into `options`.
    """

    function: ClassVar[Callable[..., Tensor]]
    config: Any = None

    def __init__(self, reduction: str = "mean") -> None:
        self.options: dict[str, Any] = {"reduction": reduction}

    def __call__(
        self, prediction: TensorLike, target: TensorLike, sample_weight: TensorLike | None = None
    ) -> Tensor:
        """The loss.

        Args:
            prediction: what a model gives.
            target: what it should give.
            sample_weight: a factor of each loss, or booleans that say which ones count. Its shape
                is that of the losses, or of their leading axes. The mean is over the weights, and
                0 if they are all 0.
        """
        return self.function(prediction, target, sample_weight=sample_weight, **self.options)

    def __repr__(self) -> str:
        fields = type(self.config).model_fields if self.config is not None else {}
        given = {name: getattr(self.config, name) for name in fields}
        inside = [f"{name}={x!r}" for name, x in given.items() if x != fields[name].default]
        return f"{type(self).__name__}({', '.join(inside)})"


def get(loss: Any) -> Any:
    """The loss that a name, a config, {"type": ...} or a callable means.

    Example:
        >>> ember_ml.training.losses.get({"type": "huber", "delta": 2.0})
        Huber(delta=2.0)
    """
    return build("losses", loss)
