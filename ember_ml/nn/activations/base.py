"""What an activation is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ember_ml._core.tensor import Tensor
from ember_ml.nn.module import Module
from ember_ml.registry import build


class Activation(Module):
    """A function of one tensor as a module.

    Subclasses name the `function`; those with parameters give them to it in `forward`.
    """

    function: ClassVar[Callable[..., Any] | None] = None
    """What it computes with the default parameters; None if it learns some."""

    def __init__(self) -> None:
        """Nothing to set."""

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        function = type(self).function
        if function is None:
            raise NotImplementedError(f"{type(self).__name__} has neither function nor forward()")
        return function(x)


def get(activation: Any) -> Callable[..., Any]:
    """The activation that a name, a config, {"type": ...} or a callable means.

    A name, or a config that changes no default, gives the plain function: a layer calls it for
    every batch, and the function is cheaper than a module. A callable is given back.

    Example:
        >>> nn.activations.get("relu") is ops.relu
        True
        >>> nn.activations.get({"type": "leaky_relu", "negative_slope": 0.5})
        LeakyReLU(negative_slope=0.5)
    """
    built = build("activations", activation)
    if built is activation or not isinstance(built, Activation) or not _is_default(built.config):
        return built
    return type(built).function or built


def _is_default(config: Any) -> bool:
    fields = type(config).model_fields
    return all(getattr(config, name) == field.default for name, field in fields.items())
