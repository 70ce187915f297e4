"""Modules one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ember_ml.configs.layers import SequentialConfig
from ember_ml.nn.containers import ModuleList
from ember_ml.nn.module import Module
from ember_ml.registry import build, register


@register("layers/sequential", config=SequentialConfig)
class Sequential(ModuleList):
    """Modules one after the other: the output of each is the input of the next.

    Args:
        layers: modules, or their names or configs; also as one list.

    Example:
        >>> model = nn.Sequential(nn.layers.Dense(4, 8), nn.layers.Dense(8, 2))
        >>> model(ops.ones((3, 4))).shape
        (3, 2)
    """

    def __init__(self, *layers: Module | Iterable[Module]) -> None:
        super().__init__(build("", layer) for layer in layers)

    @property
    def config(self) -> SequentialConfig:
        """The configs of the modules that are here now."""
        return SequentialConfig(layers=tuple(each.config or each for each in self._items))

    @config.setter
    def config(self, config: SequentialConfig) -> None:
        """What it was built by says nothing of modules that were added."""

    def forward(self, x: Any) -> Any:
        """The input through all modules."""
        for module in self._items:
            x = module(x)
        return x

    def extra_repr(self) -> str:
        """Nothing: the modules are listed below."""
        return ""
