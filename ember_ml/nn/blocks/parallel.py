"""Blocks whose layers read the same input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Below1, ComponentLike, NormName, Positive, Size
from ember_ml.configs.patterns import LayersField
from ember_ml.nn import sequence_module
from ember_ml.nn.blocks.base import Block, flat_positions
from ember_ml.nn.blocks.residual import ResidualBlock
from ember_ml.nn.module import Module
from ember_ml.nn.sequence_module import Positions, State
from ember_ml.registry import register


@register("blocks/parallel_residual", config_name="ParallelBlockConfig")
class ParallelBlock(Block):
    """Layers in parallel, each with a norm, in one residual connection.

    ::

        x ─┬─ norm ─ layer 0 ─ + ── y
           ├─ norm ─ layer 1 ──┤
           └───────────────────┘

    Args:
        name: Name of the block in a wiring.
        hidden_size: Number of input and output features. Default: that of the first layer.
        layers: A pattern such as "attention mlp", or a list of names, configs and modules.
        norm: Normalization layer: "rms_norm", "layer_norm" or "none".
        dropout: Dropout probability of each layer's output.
        stochastic_depth: Probability of skipping a layer for an example during training.
        norm_eps: Epsilon of the norms. Default: the norm's own.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Black et al., "GPT-NeoX-20B: An Open-Source Autoregressive Language Model", 2022.

    Example:
        >>> nn.blocks.ParallelBlock("", 8, "attention swiglu")(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        name: str = "",
        hidden_size: Size | None = None,
        layers: LayersField = (),
        norm: NormName = "rms_norm",
        dropout: Below1 = 0.0,
        stochastic_depth: Below1 = 0.0,
        norm_eps: Positive | None = None,
    ) -> None:
        super().__init__(
            name, hidden_size, layers, True, norm, "pre", dropout, stochastic_depth, norm_eps
        )

    def add_layer(self, layer: ComponentLike, stochastic_depth: float | None = None) -> Self:
        """Append a layer, and return the block; see `Block.add_layer`."""
        super().add_layer(layer, stochastic_depth)
        added = self.layers[-1]
        if not isinstance(added, ResidualBlock) or added.placement == "post":
            self.layers.pop()
            what = type(added).__name__
            raise ArgumentError(
                f"{type(self).__name__} {self.name!r}: a layer must be a module without a residual "
                f"connection, or a ResidualBlock with another placement than 'post', not a {what}"
            )
        return self

    def _describe(self) -> Any:
        from ember_ml.configs.blocks import ParallelBlockConfig

        options = {key: value for key, value in self._options.items() if key != "placement"}
        return ParallelBlockConfig(
            name=self.name,
            hidden_size=self.hidden_size,
            layers=tuple(layer.config or layer for layer in self.layers),
            **options,
        )

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
        at: Positions | None = None,
    ) -> Any:
        """Return the sum of the input and the layers' outputs; with a state, also their states.

        Args:
            x: Tensor of shape (batch, time, hidden_size).
            mask: Padding mask of shape (batch, time), False at padding.
            timespans: Time since the previous position, for layers that use it.
            state: States of the layers before the first position. Default: the start of the
                sequence.
            at: Positions to return, as in `Block`. Default: all positions.
        """
        self.check_sequence(x, mask)
        if at is not None:
            at = sequence_module.as_positions(at, x)

        def run(layer: Module, before: State, x: Tensor) -> tuple[Tensor, State]:
            if state is None:
                return sequence_module.run(layer, x, mask, timespans), ()
            return sequence_module.extend(layer, x, before, mask, timespans)

        y, after = self._sum(x, [()] * len(self.layers) if state is None else state, run)
        if at is not None:
            y = flat_positions(sequence_module.take_positions(y, at))
        return y if state is None else (y, after)

    def step(
        self, x: Tensor, state: State, timespan: TensorLike | None = None
    ) -> tuple[Tensor, State]:
        """Return the output at one position, and the next states of the layers."""

        def run(layer: Module, before: State, x: Tensor) -> tuple[Tensor, State]:
            return sequence_module.step(layer, x, before, timespan)

        return self._sum(x, state, run)

    def _sum(
        self,
        x: Tensor,
        state: Sequence[State],
        run: Callable[[Module, State, Tensor], tuple[Tensor, State]],
    ) -> tuple[Tensor, State]:
        """Return the sum of the input and the layers' outputs, and their states."""
        self._check_states(state)
        y, states = x, []
        for block, before in zip(self.layers, state, strict=True):
            assert isinstance(block, ResidualBlock)
            output, after = block.branch(x, partial(run, block.layer, before))
            y = y + output
            states.append(after)
        return y, tuple(states)
