"""The part that all sequence models share: a residual stack of layers and a final norm."""

from __future__ import annotations

from typing import Any

from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import NormName
from ember_ml.configs.patterns import LayersLike, items_of, longest, sized
from ember_ml.nn._hooks import is_hooked
from ember_ml.nn.blocks import Block
from ember_ml.nn.blocks.residual import Placement, create_norm
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.models.pooling import pool
from ember_ml.nn.module import Module
from ember_ml.nn.sequence_module import Positions, State


class Backbone(SequenceMixer):
    """Layers with residual connections, and a final norm.

    Args:
        layers: A pattern such as "(mamba swiglu)x3 attention swiglu", or a list of names, configs
            and modules.
        hidden_size: Number of input and output features.
        norm: Normalization layer: "rms_norm", "layer_norm" or "none".
        placement: Where norms are applied: to the input of each layer ("pre"), to the sum after it
            ("post"), to its output before the sum ("output") or to input and output ("sandwich").
            With "post", there is no final norm.
        dropout: Dropout probability of each layer's output.
        stochastic_depth: Probability of skipping the last layer for an example during training.
            It increases linearly from 0 at the first layer.
        max_length: Maximum sequence length, for layers that need it.
        norm_eps: Epsilon of the norms. Default: the norm's own.
    """

    norm: Module | None

    def __init__(
        self,
        layers: LayersLike,
        hidden_size: int,
        norm: NormName = "rms_norm",
        placement: Placement = "pre",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        norm_eps: float | None = None,
    ) -> None:
        self.features = hidden_size
        known = [sized(layer, hidden_size, **longest(max_length)) for layer in items_of(layers)]
        self.blocks = Block("", hidden_size, (), True, norm, placement, dropout, norm_eps=norm_eps)
        for at, layer in enumerate(known):
            self.blocks.add_layer(layer, stochastic_depth * at / max(1, len(known) - 1))
        self.norm = create_norm(norm, hidden_size, norm_eps) if placement != "post" else None

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether all layers are causal."""
        return self.blocks.is_causal

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether any layer uses `timespans`."""
        return self.blocks.uses_timespans

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
        at: Positions | None = None,
    ) -> Any:
        """Return the features of each position, of the shape of `x`; with a state, also the states.

        Args:
            x: Tensor of shape (batch, time, hidden_size).
            mask: Padding mask of shape (batch, time), False at padding.
            timespans: Time since the previous position, for layers that use it.
            state: States of the layers before the first position. Default: the start of the
                sequence.
            at: Positions whose features are needed, as in `Block`. Default: all positions.
        """
        if state is None:
            return self.normalize(self.blocks(x, mask, timespans, at=at))
        y, state = self.blocks(x, mask, timespans, state=state, at=at)
        return self.normalize(y), state

    def initial_state(self, batch: int) -> State:
        """Return the states of the layers before the first position."""
        return self.blocks.initial_state(batch)

    def step(
        self, x: Tensor, state: State, timespan: TensorLike | None = None
    ) -> tuple[Tensor, State]:
        """Return the features of one position, and the next states of the layers."""
        y, state = self.blocks.step(x, state, timespan)
        return self.normalize(y), state

    def normalize(self, x: Tensor) -> Tensor:
        """Return the output of the last norm, for the output of the layers."""
        return x if self.norm is None else self.norm(x)

    def pooled(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        pooling: str = "last",
    ) -> Tensor:
        """Return the pooled features of a sequence, (batch, hidden_size).

        Args:
            x: Tensor of shape (batch, time, hidden_size).
            mask: Padding mask of shape (batch, time), False at padding.
            timespans: Time since the previous position, for layers that use it.
            pooling: "last", "mean" or "max".
        """
        if pooling == "last" and mask is None and x.shape[1] and not is_hooked(self):
            return self(x, None, timespans, at=-1)
        return pool(self(x, mask, timespans), mask, pooling)
