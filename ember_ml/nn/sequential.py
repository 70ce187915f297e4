"""Modules in sequence."""

from __future__ import annotations

from typing import Any

from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.base import Config
from ember_ml.configs.fields import AnyComponent
from ember_ml.nn import sequence_module
from ember_ml.nn.containers import ModuleList
from ember_ml.nn.module import Module
from ember_ml.nn.sequence_module import SequenceModule, State
from ember_ml.nn.stages import StageParts
from ember_ml.registry import build, get, register


@register("layers/sequential")
class Sequential(SequenceModule, ModuleList[Module]):
    """Modules in sequence: the output of each is the input of the next.

    Args:
        layers: Modules, or their names or configs; also as one list.

    Example:
        >>> model = nn.Sequential(nn.layers.Dense(4, 8), nn.layers.Dense(8, 2))
        >>> model(ops.ones((3, 4))).shape
        (3, 2)
    """

    def __init__(self, *layers: AnyComponent) -> None:
        super().__init__(build("", layer) for layer in layers)

    @property
    def config(self) -> Config:
        """Config with the current modules, including those added later."""
        config: Config = get("layers/sequential").config(
            layers=tuple(module.config or module for module in self._items)
        )
        return config

    @config.setter
    def config(self, config: Config) -> None:
        """Ignore the original config, which does not know the modules added later."""

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether all modules are causal."""
        return sequence_module.all_causal(self._items)

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether any module uses `timespans`."""
        return sequence_module.any_uses_timespans(self._items)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
    ) -> Any:
        """Return the output of the last module; with a state, also the states of the modules.

        Args:
            x: Input of the first module.
            mask: Padding mask of shape (batch, time), False at padding, for sequence modules.
            timespans: Time since the previous position, for modules that use it.
            state: States of the modules before the first position. Default: the start of the
                sequence.
        """
        if state is not None:
            return sequence_module.extend_all(self._items, x, state, mask, timespans)
        return sequence_module.run_all(self._items, x, mask, timespans)

    def stage_parts(self) -> StageParts:
        """Return the modules as layers, for a pipeline of processes."""
        return StageParts(None, list(self._items), None)

    def initial_state(self, batch: int) -> State:
        """Return the states of the modules before the first position."""
        return sequence_module.initial_states(self._items, batch)

    def step(
        self, x: Tensor, state: State, timespan: TensorLike | None = None
    ) -> tuple[Tensor, State]:
        """Return the output at one position, and the next states of the modules."""
        return sequence_module.step_all(self._items, x, state, timespan)

    def extra_repr(self) -> str:
        """Return "": the repr lists the modules below."""
        return ""
