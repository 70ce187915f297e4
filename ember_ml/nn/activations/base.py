"""The base class of activations and their lookup by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ember_ml._core.tensor import Tensor
from ember_ml.configs.base import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.nn.module import Module
from ember_ml.registry import build

_elementwise: list[Callable[..., Tensor]] = []
"""Functions of the activations that map features one by one."""


class Activation(Module):
    """Activation function as a module.

    Subclasses set `function`. Those with parameters pass them to it in `forward`.
    """

    function: ClassVar[Callable[..., Tensor] | None] = None
    """The function with default parameters; None if the parameters are learned."""
    is_elementwise: bool = True
    """Whether each output depends on one input only, by the same function for all features."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.function is not None and cls.is_elementwise:
            _elementwise.append(cls.function)

    def __init__(self) -> None:
        """Create the module; the base class has no parameters."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        function = type(self).function
        if function is None:
            raise NotImplementedError(
                f"{type(self).__name__} defines neither function nor forward()"
            )
        return function(x)


def get(activation: ComponentLike) -> Callable[..., Tensor]:
    """Return an activation function.

    A name, or a config with default values, returns the plain function, which is cheaper to call
    than a module.

    Args:
        activation: A name, a config, a `{"type": ...}` mapping, or a callable, which is returned as
            it is.

    Example:
        >>> nn.activations.get("relu") is ops.relu
        True
        >>> nn.activations.get({"type": "leaky_relu", "negative_slope": 0.5})
        LeakyReLU(negative_slope=0.5)
    """
    built: Callable[..., Tensor] = build("activations", activation)
    if built is activation or not isinstance(built, Activation) or not _is_default(built.config):
        return built
    return type(built).function or built


def _is_default(config: Config) -> bool:
    fields = type(config).model_fields
    return all(getattr(config, name) == field.default for name, field in fields.items())


def is_elementwise(activation: Callable[..., Tensor]) -> bool:
    """Return whether an activation maps all features one by one, by the same function.

    Args:
        activation: A result of `get`. A function that is not Ember's may do anything: False.
    """
    if isinstance(activation, Activation):
        return activation.is_elementwise
    return any(activation is each for each in _elementwise)
