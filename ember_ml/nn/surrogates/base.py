"""The base class of surrogate gradients and their lookup by name."""

from __future__ import annotations

from typing import ClassVar

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.base import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.ops.nn.spiking import surrogate_fire
from ember_ml.registry import build


class Surrogate:
    """Step function that is 1 for positive numbers, with the gradient of a smooth function.

    Subclasses implement `smooth`. The built-in ones also name a kernel of `ops.spiking_scan`;
    layers run others step by step.

    Attributes:
        kernel: Name of the surrogate in `ops.spiking_scan`; None if it has none.
        slope: Parameter of the kernel.
    """

    config: Config | None = None
    kernel: ClassVar[str | None] = None
    slope: float = 1.0

    def smooth(self, u: Tensor) -> Tensor:
        """Return the smooth function whose derivative replaces that of the step.

        Args:
            u: Voltage minus threshold.
        """
        raise NotImplementedError

    def __call__(self, u: TensorLike) -> Tensor:
        """Return spikes: 1 where u is positive, otherwise 0.

        Args:
            u: Voltage minus threshold.
        """
        return surrogate_fire(self.smooth)(convert_to_tensor(u))

    def __repr__(self) -> str:
        fields = self.config.to_dict() if self.config is not None else {}
        arguments = ", ".join(
            f"{name}={value!r}" for name, value in fields.items() if name != "type"
        )
        return f"{type(self).__name__}({arguments})"


def get(surrogate: ComponentLike) -> Surrogate:
    """Return a surrogate gradient.

    Args:
        surrogate: A name, a config, a `{"type": ...}` mapping, or a surrogate, which is returned
            as it is.

    Example:
        >>> nn.surrogates.get("atan")
        Atan(slope=2.0)
    """
    built: Surrogate = build("surrogates", surrogate)
    return built
