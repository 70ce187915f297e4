"""Modules one after the other."""

from __future__ import annotations

from typing import Any

from ember_ml._core.tensor import Tensor
from ember_ml.configs.base import Config
from ember_ml.configs.fields import AnyComponent
from ember_ml.nn import sequence_module
from ember_ml.nn.containers import ModuleList
from ember_ml.nn.sequence_module import SequenceModule, State
from ember_ml.registry import build, get, register


@register("layers/sequential")
class Sequential(SequenceModule, ModuleList):
    """Modules one after the other: the output of each is the input of the next.

    Args:
        layers: modules, or their names or configs; also as one list.

    Example:
        >>> model = nn.Sequential(nn.layers.Dense(4, 8), nn.layers.Dense(8, 2))
        >>> model(ops.ones((3, 4))).shape
        (3, 2)
    """

    def __init__(self, *layers: AnyComponent) -> None:
        super().__init__(build("", layer) for layer in layers)

    @property
    def config(self) -> Config:
        """The configs of the modules that are here now."""
        return get("layers/sequential").config(
            layers=tuple(each.config or each for each in self._items)
        )

    @config.setter
    def config(self, config: Config) -> None:
        """What it was built by says nothing of modules that were added."""

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether no module looks ahead."""
        return sequence_module.all_causal(self._items)

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether a module minds the time between positions."""
        return sequence_module.any_uses_timespans(self._items)

    def forward(self, x: Any, mask: Tensor | None = None, timespans: Any = None) -> Any:
        """The input through all modules.

        Args:
            x: what the first module takes.
            mask: (batch, time), False where there is padding, for the modules that mix positions.
            timespans: the time since the position before, for the modules that mind it.
        """
        return sequence_module.run_all(self._items, x, mask, timespans)

    def initial_state(self, batch: int) -> State:
        """The states of the modules."""
        return sequence_module.initial_states(self._items, batch)

    def step(self, x: Tensor, state: State, timespan: Any = None) -> tuple[Tensor, State]:
        """One position through all modules, and their states after it."""
        return sequence_module.step_all(self._items, x, state, timespan)

    def extra_repr(self) -> str:
        """Nothing: the modules are listed below."""
        return ""
