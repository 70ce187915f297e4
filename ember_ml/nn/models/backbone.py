"""What the models have in common: layers around a residual stream, and a last norm."""

from __future__ import annotations

from typing import Any

from ember_ml._core.tensor import Tensor
from ember_ml.configs.patterns import items_of, longest, sized
from ember_ml.nn import sequence_module
from ember_ml.nn.blocks import Block
from ember_ml.nn.blocks.residual import norm_of
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.module import Module
from ember_ml.nn.sequence_module import State


class Backbone(SequenceMixer):
    """Layers, each of which its input goes past, and a norm behind the last.

    Args:
        layers: a pattern such as "(mamba swiglu)x3 attention swiglu", or a list of names, configs
            and modules.
        hidden_size: the features in and out.
        norm: "rms_norm", "layer_norm" or "none".
        placement: whether norms stand before ("pre") or after ("post") the layers; after them,
            there is none behind the last.
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out; it grows
            from 0 at the first layer to this at the last.
        max_length: the longest sequence, for the layers that need to know.
        norm_eps: what keeps the norms' denominators from zero; the norm's own if not given.
    """

    norm: Module | None

    def __init__(
        self,
        layers: Any,
        hidden_size: int,
        norm: str = "rms_norm",
        placement: str = "pre",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        norm_eps: float | None = None,
    ) -> None:
        self.features = hidden_size
        made = [sized(layer, hidden_size, **longest(max_length)) for layer in items_of(layers)]
        self.blocks = Block("", hidden_size, (), True, norm, placement, dropout, norm_eps=norm_eps)
        for at, layer in enumerate(made):
            self.blocks.add_layer(layer, stochastic_depth * at / max(1, len(made) - 1))
        self.norm = norm_of(norm, hidden_size, norm_eps) if placement == "pre" else None

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether no layer looks ahead."""
        return sequence_module.all_causal([self.blocks])

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether a layer minds the time between positions."""
        return sequence_module.any_uses_timespans([self.blocks])

    def forward(self, x: Tensor, mask: Tensor | None = None, timespans: Any = None) -> Tensor:
        """The sequence through all layers."""
        return self._normed(self.blocks(x, mask, timespans))

    def initial_state(self, batch: int) -> State:
        """The states of the layers."""
        return self.blocks.initial_state(batch)

    def step(self, x: Tensor, state: State, timespan: Any = None) -> tuple[Tensor, State]:
        """One position through all layers, and their states after it."""
        y, state = self.blocks.step(x, state, timespan)
        return self._normed(y), state

    def _normed(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)
