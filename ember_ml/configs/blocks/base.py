"""Configs of the blocks that hold any layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import model_validator

from ember_ml.configs.base import Config
from ember_ml.configs.errors import ConfigError, below
from ember_ml.configs.fields import Below1, Component, Flag, Positive, Size
from ember_ml.configs.patterns import LayersField, items_of, sized

Placement = Literal["pre", "post"]
"""Whether a norm stands before a layer, or after the sum with what goes past it."""
Norm = Literal["rms_norm", "layer_norm", "none"]


def check_layers(layers: Any, width: int | None) -> None:
    """Raise what is wrong with layers of a width, if it is known, in a validator of a config."""
    problems = []
    for at, item in enumerate(items_of(layers) if width is not None else ()):
        try:
            sized(item, width or 1)
        except ConfigError as error:
            problems += below(error, "layers", at)
    if problems:
        raise ConfigError("layers", problems)


class ResidualConfig(Config):
    """A layer that its input goes past."""

    component: ClassVar[str] = "blocks/residual"

    @model_validator(mode="before")
    @classmethod
    def _size_layer(cls, values: Any) -> Any:
        """Give a layer that was only named its size."""
        layer, width = values.get("layer"), values.get("hidden_size")
        if not isinstance(layer, (str, Mapping)) or not isinstance(width, int):
            return values
        try:
            return {**values, "layer": sized(layer, width)}
        except ConfigError as error:
            raise ConfigError("layer", below(error, "layer")) from None

    layer: Annotated[Any, Component("")]
    hidden_size: Size
    norm: Norm = "rms_norm"
    placement: Placement = "pre"
    dropout: Below1 = 0.0
    stochastic_depth: Below1 = 0.0
    norm_eps: Positive | None = None


class BlockConfig(Config):
    """Layers, each of which its input goes past."""

    component: ClassVar[str] = "blocks/block"
    name: str = ""
    hidden_size: Size | None = None
    layers: LayersField = ()
    residual: Flag = True
    norm: Norm = "rms_norm"
    placement: Placement = "pre"
    dropout: Below1 = 0.0
    stochastic_depth: Below1 = 0.0
    norm_eps: Positive | None = None

    @model_validator(mode="after")
    def _check_layers(self) -> Self:
        check_layers(self.layers, self.hidden_size)
        return self


class BlockFields(Config):
    """What blocks of a width have in common."""

    hidden_size: Size
    norm: Norm = "rms_norm"
    dropout: Below1 = 0.0
    stochastic_depth: Below1 = 0.0
