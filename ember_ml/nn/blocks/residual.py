"""Residual wrapper around a layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.errors import ConfigError, below
from ember_ml.configs.fields import AnyComponent, Below1, NormName, Positive, Size
from ember_ml.configs.patterns import sized
from ember_ml.nn import sequence_module
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.module import Module
from ember_ml.nn.sequence_module import Positions, State
from ember_ml.registry import build, create, register

Placement = Literal["pre", "post", "output", "sandwich"]
"""Where a norm is applied: to the input of a layer, to the sum after it, to its output before the
sum, or to both input and output."""


def create_norm(norm: str, features: int, eps: float | None = None) -> Module | None:
    """Return a normalization layer, or None for "none".

    Args:
        norm: "rms_norm", "layer_norm" or "none".
        features: Number of features.
        eps: Epsilon of the layer. Default: the layer's own.
    """
    if norm == "none":
        return None
    layer: Module = create(f"layers/{norm}", features, **({} if eps is None else {"eps": eps}))
    return layer


@register("blocks/residual", config_name="ResidualConfig")
class ResidualBlock(SequenceMixer):
    r"""Residual wrapper around a layer: `x + layer(norm(x))`.

    ::

        x ──┬── norm ── layer ── dropout ── + ── y      "pre"
            └───────────────────────────────┘
        x ──┬── layer ── dropout ── + ── norm ── y      "post"
            └───────────────────────┘
        x ──┬── layer ── norm ── dropout ── + ── y      "output"
            └───────────────────────────────┘
        x ──┬── norm ── layer ── norm ── dropout ── + ── y      "sandwich"
            └───────────────────────────────────────┘

    Args:
        layer: A module, or the name or config of one. It must preserve the shape of its input.
        hidden_size: Number of input and output features.
        norm: Normalization layer: "rms_norm", "layer_norm" or "none".
        placement: Where the norm is applied: to the input of the layer ("pre", which trains
            without a learning rate warm-up), to the sum ("post"), to the output of the layer
            ("output"), or to input and output, with two norms ("sandwich").
        dropout: Dropout probability of the layer's output.
        stochastic_depth: Probability of skipping the layer for an example during training.
        norm_eps: Epsilon of the norm. Default: the norm's own.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Xiong et al., "On Layer Normalization in the Transformer Architecture", 2020; Huang
    et al., "Deep Networks with Stochastic Depth", 2016; OLMo Team, "2 OLMo 2 Furious", 2024 (norms
    of the output); Gemma Team, "Gemma 2", 2024 (both).

    Example:
        >>> block = nn.blocks.ResidualBlock(nn.layers.SwiGLU(8), 8)
        >>> block(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    norm: Module | None
    output_norm: Module | None
    """The second norm of "sandwich"."""

    def __init__(
        self,
        layer: AnyComponent,
        hidden_size: Size,
        norm: NormName = "rms_norm",
        placement: Placement = "pre",
        dropout: Below1 = 0.0,
        stochastic_depth: Below1 = 0.0,
        norm_eps: Positive | None = None,
    ) -> None:
        self.features = hidden_size
        self.norm = create_norm(norm, hidden_size, norm_eps)
        second = norm if placement == "sandwich" else "none"
        self.output_norm = create_norm(second, hidden_size, norm_eps)
        self.layer: Module = build("", layer)
        self.placement = placement
        self.dropout = dropout
        self.stochastic_depth = stochastic_depth

    @staticmethod
    def prepare_config(values: dict[str, object]) -> dict[str, object]:
        """Set the width of a layer that is given by name."""
        layer, width = values.get("layer"), values.get("hidden_size")
        if not isinstance(layer, (str, Mapping)) or not isinstance(width, int):
            return values
        try:
            return {**values, "layer": sized(layer, width)}
        except ConfigError as error:
            raise ConfigError("layer", below(error, "layer")) from None

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether the layer is causal."""
        return sequence_module.all_causal([self.layer])

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether the layer uses `timespans`."""
        return sequence_module.any_uses_timespans([self.layer])

    @property
    def is_position_wise(self) -> bool:  # type: ignore[override]
        """Whether the layer and the norms map each position by itself; no example skips them."""
        return self.layer.is_position_wise and self._adds_by_position()

    def _adds_by_position(self) -> bool:
        """Return whether everything except the layer maps each position by itself."""
        if self.training and self.stochastic_depth:
            return False
        norms = (self.norm, self.output_norm)
        return all(norm is None or norm.is_position_wise for norm in norms)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
    ) -> Any:
        """Return the residual sum for a sequence; with a state, also the layer's next state.

        Args:
            x: Tensor of shape (batch, time, hidden_size).
            mask: Padding mask of shape (batch, time), False at padding.
            timespans: Time since the previous position, for layers that use it.
            state: The layer's state before the first position. Default: the start of the sequence.
        """
        self.check_sequence(x, mask)
        if state is None:
            run = sequence_module.run
            return self._add_residual(x, lambda x: (run(self.layer, x, mask, timespans), ()))[0]
        extend = sequence_module.extend
        return self._add_residual(x, lambda x: extend(self.layer, x, state, mask, timespans))

    def forward_at(self, x: Tensor, at: Positions, mask: Tensor | None = None) -> Tensor:
        """Return the residual sums of some positions; the layer may leave out the others."""
        if not self._adds_by_position():
            return super().forward_at(x, at, mask)
        self.check_sequence(x, mask)
        y = sequence_module.run_at(self.layer, self._normalized(x), at, mask)
        taken = sequence_module.take_positions(x, at)
        self._check_shapes(taken, y)
        return self._sum(taken, self._finish(y))

    def initial_state(self, batch: int) -> State:
        """Return the layer's state before the first position."""
        return sequence_module.initial_state(self.layer, batch)

    def step(
        self, x: Tensor, state: State, timespan: TensorLike | None = None
    ) -> tuple[Tensor, State]:
        """Return the output at one position, and the layer's next state."""
        return self._add_residual(x, lambda x: sequence_module.step(self.layer, x, state, timespan))

    def _add_residual(
        self, x: Tensor, layer: Callable[[Tensor], tuple[Tensor, State]]
    ) -> tuple[Tensor, State]:
        """Return the residual sum, and the state that the layer returns."""
        y, state = self.branch(x, layer)
        return self._sum(x, y), state

    def _sum(self, x: Tensor, y: Tensor) -> Tensor:
        """Return x + y, normalized if the norm is after the sum."""
        y = x + y
        return self.norm(y) if self.norm is not None and self.placement == "post" else y

    def branch(
        self, x: Tensor, layer: Callable[[Tensor], tuple[Tensor, State]]
    ) -> tuple[Tensor, State]:
        """Return what is added to x, and the state that the layer returns.

        That is the output of the layer, with norms and dropout.

        Args:
            x: Tensor of shape (batch, time, hidden_size) or (batch, hidden_size).
            layer: Function that calls the layer, and returns its output and state.
        """
        y, state = layer(self._normalized(x))
        self._check_shapes(x, y)
        return self._finish(y), state

    def _check_shapes(self, x: Tensor, y: Tensor) -> None:
        """Raise a ShapeError unless the layer preserves the shape."""
        if y.shape != x.shape:
            raise ShapeError(
                f"{type(self).__name__}: {type(self.layer).__name__} maps {x.shape} to {y.shape}; "
                "a layer with a residual connection must preserve the shape"
            )

    def _normalized(self, x: Tensor) -> Tensor:
        """Return the input of the layer."""
        has_input_norm = self.placement == "pre" or self.placement == "sandwich"
        return self.norm(x) if self.norm is not None and has_input_norm else x

    def _finish(self, y: Tensor) -> Tensor:
        """Apply the norm and dropout after the layer."""
        after = self.norm if self.placement == "output" else self.output_norm
        y = y if after is None else after(y)
        return self._drop(y) if self.training else y

    def _drop(self, y: Tensor) -> Tensor:
        """Apply dropout, and skip the layer for some examples."""
        if self.dropout:
            y = ops.dropout(y, self.dropout)
        if self.stochastic_depth:
            first = y[(slice(None), *[slice(1)] * (y.ndim - 1))]  # one element per example
            y = y * ops.dropout(ops.ones_like(first), self.stochastic_depth)
        return y
