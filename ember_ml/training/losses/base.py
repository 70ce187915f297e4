"""The base class of losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, TypeAlias, cast

from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.registry import build

LossLike: TypeAlias = Callable[..., Tensor]
"""(prediction, target) -> loss; with a keyword `sample_weight` if batches have masks."""
Reduction: TypeAlias = Literal["mean", "sum", "none"]


class Loss:
    """Base class of losses: `loss(prediction, target)` returns a scalar to minimize.

    Losses of half-precision predictions are computed and returned in float32.

    Subclasses set `function`, and put its keyword arguments into `options`.

    Args:
        reduction: "mean", "sum", or "none" for the loss of each element.
    """

    function: ClassVar[Callable[..., Tensor]]
    config: Config | None = None

    def __init__(self, reduction: Reduction = "mean") -> None:
        self.options: dict[str, object] = {"reduction": reduction}

    def __call__(
        self, prediction: TensorLike, target: TensorLike, sample_weight: TensorLike | None = None
    ) -> Tensor:
        """Return the loss.

        Args:
            prediction: Output of the model.
            target: Expected output.
            sample_weight: Factor on the loss of each element, or a boolean mask, of the shape of
                the losses or of their leading axes. The mean is a weighted mean; 0 if all weights
                are 0.
        """
        return self.function(prediction, target, sample_weight=sample_weight, **self.options)

    def __repr__(self) -> str:
        fields = type(self.config).model_fields if self.config is not None else {}
        given = {name: getattr(self.config, name) for name in fields}
        inside = [f"{name}={x!r}" for name, x in given.items() if x != fields[name].default]
        return f"{type(self).__name__}({', '.join(inside)})"


def get(loss: ComponentLike) -> LossLike:
    """Return the loss described by a name, a config, {"type": ...} or a callable.

    Args:
        loss: Description of the loss; a callable is returned as it is.

    Example:
        >>> ember_ml.training.losses.get({"type": "huber", "delta": 2.0})
        Huber(delta=2.0)
    """
    return cast(LossLike, build("losses", loss))
