"""The base class of the blocks, and the options that all blocks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self, TypedDict

from pydantic import BeforeValidator

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.errors import ConfigError, below
from ember_ml.configs.fields import Below1, ComponentLike, NormName, Positive, Size
from ember_ml.configs.patterns import (
    LayersField,
    LayersLike,
    check_names,
    items_of,
    sized,
    width_of,
)
from ember_ml.nn import sequence_module
from ember_ml.nn.blocks.residual import Placement, ResidualBlock
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.module import Module
from ember_ml.nn.sequence_module import Positions, State
from ember_ml.registry import build, register

if TYPE_CHECKING:
    from ember_ml.configs import Config


def flat_positions(x: Tensor) -> Tensor:
    """Return chosen positions, (1, count, features) or (batch, 1, features), as rows."""
    return ops.reshape(x, (-1, x.shape[-1]))


class NormOption(TypedDict, total=False):
    """The normalization layer; see `Block`."""

    norm: NormName


class ResidualOptions(TypedDict, total=False):
    """Options of the residual connections; see `Block`."""

    dropout: Below1
    stochastic_depth: Below1
    norm_eps: Positive | None


class BlockOptions(NormOption, ResidualOptions, total=False):
    """Options that blocks share; see `Block`."""


def _check_optional(value: Any) -> Any:
    return "none" if value in (None, "none") else check_names(value)


OptionalLayers = Annotated[Any, BeforeValidator(_check_optional)]
"""Layers given by name, pattern or {"type": ...}; "none" for none."""


def optional_layers(layers: LayersLike | None) -> list[ComponentLike]:
    """Return the layers of a pattern or list; none for "none" and None."""
    return [] if layers is None or layers == "none" else items_of(layers)


def check_layers(config: Any) -> None:
    """Raise a ConfigError if a config has `layers` that are not valid with its `hidden_size`."""
    width = config.hidden_size
    if width is None or "layers" not in type(config).model_fields:
        return
    problems = []
    for at, item in enumerate(items_of(config.layers)):
        try:
            sized(item, width)
        except ConfigError as error:
            problems += below(error, "layers", at)
    if problems:
        raise ConfigError("layers", problems)


@register("blocks/block", config_name="BlockConfig")
class Block(SequenceMixer):
    """Layers in sequence, each with a norm and a residual connection.

    ::

        x ─┬─ norm ─ layer 0 ─ + ─┬─ norm ─ layer 1 ─ + ── y
           └───────────────────┘  └───────────────────┘

    Blocks among the layers are not wrapped: they have residual connections of their own.

    Args:
        name: Name of the block in a wiring.
        hidden_size: Number of input and output features. Default: that of the first layer.
        layers: A pattern such as "attention swiglu", or a list of names, configs and modules.
        residual: Whether layers have residual connections. Without them, there are no norms and
            no dropout either.
        norm: Normalization layer: "rms_norm", "layer_norm" or "none".
        placement: Where norms are applied: to the input of each layer ("pre"), to the sum after it
            ("post"), to its output before the sum ("output") or to input and output ("sandwich").
        dropout: Dropout probability of each layer's output.
        stochastic_depth: Probability of skipping a layer for an example during training.
        norm_eps: Epsilon of the norms. Default: the norm's own.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> block = nn.blocks.Block("mixer", 8, "attention swiglu")
        >>> block.add_layer("gru").add_layer(nn.layers.MLP(8))(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    ITEMS = "layers"
    _config: Config | None = None
    _has_grown = False

    def __init__(
        self,
        name: str = "",
        hidden_size: Size | None = None,
        layers: LayersField = (),
        residual: bool = True,
        norm: NormName = "rms_norm",
        placement: Placement = "pre",
        dropout: Below1 = 0.0,
        stochastic_depth: Below1 = 0.0,
        norm_eps: Positive | None = None,
    ) -> None:
        self.name = name
        self.hidden_size = hidden_size
        self.layers: list[Module] = []
        self._residual = residual
        self._options: dict[str, Any] = {
            "norm": norm,
            "placement": placement,
            "dropout": dropout,
            "stochastic_depth": stochastic_depth,
            "norm_eps": norm_eps,
        }
        for layer in items_of(layers):
            self.add_layer(layer)

    check_config = staticmethod(check_layers)

    @property
    def features(self) -> int:  # type: ignore[override]
        """Number of input and output features."""
        if self.hidden_size is None:
            raise ArgumentError(
                f"{type(self).__name__} {self.name!r}: hidden_size is unknown; pass hidden_size, "
                "or add a layer that has a width first"
            )
        return self.hidden_size

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether all layers are causal."""
        return sequence_module.all_causal(self.layers)

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether any layer uses `timespans`."""
        return sequence_module.any_uses_timespans(self.layers)

    @property
    def is_position_wise(self) -> bool:  # type: ignore[override]
        """Whether all layers map each position by itself."""
        return all(layer.is_position_wise for layer in self.layers)

    @property
    def config(self) -> Any:
        """The config that describes the block, including layers added later."""
        if not self._has_grown or self._config is None:
            return self._config
        return self._describe()

    @config.setter
    def config(self, config: Config | None) -> None:
        self._config, self._has_grown = config, False

    def _describe(self) -> Config:
        from ember_ml.configs.blocks import BlockConfig

        return BlockConfig(
            name=self.name,
            hidden_size=self.hidden_size,
            layers=tuple(layer.config or layer for layer in self.layers),
            residual=self._residual,
            **self._options,
        )

    def add_layer(self, layer: ComponentLike, stochastic_depth: float | None = None) -> Self:
        """Append a layer, and return the block.

        Args:
            layer: A name, a config or a module.
            stochastic_depth: Probability of skipping this layer. Default: the block's.
        """
        known = sized(layer, self.hidden_size) if self.hidden_size else layer
        module: Module = build("layers" if isinstance(known, str) else "", known)
        if self.hidden_size is None:
            self.hidden_size = width_of(module.config)
        if self._residual and isinstance(module, (Block, ResidualBlock)):
            self._check_width(module)
        elif self._residual:
            own = {} if stochastic_depth is None else {"stochastic_depth": stochastic_depth}
            module = ResidualBlock(module, self.features, **{**self._options, **own})
        self.layers.append(module)
        self._has_grown = True
        return self

    def _check_width(self, block: SequenceMixer) -> None:
        if block.features != self.features:
            raise ArgumentError(
                f"{type(self).__name__} {self.name!r}: hidden_size={self.features} differs from "
                f"that of {type(block).__name__}, {block.features}"
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
        """Return the output of the last layer; with a state, also the states of the layers.

        Args:
            x: Tensor of shape (batch, time, hidden_size).
            mask: Padding mask of shape (batch, time), False at padding.
            timespans: Time since the previous position, for layers that use it.
            state: States of the layers before the first position. Default: the start of the
                sequence.
            at: Positions whose outputs are needed: indices example * time + position, of shape
                (count,), or one position of every example, such as -1. The output is then of shape
                (count, hidden_size), or (batch, hidden_size), and the last layers that map each
                position by itself run on these positions alone. Default: all positions.
        """
        if self._residual:
            self.check_sequence(x, mask)
        if at is not None:
            at = sequence_module.as_positions(at, x)
        if state is not None:
            self._check_states(state)
            return self._extend(x, state, mask, timespans, at)
        if at is None:
            return sequence_module.run_all(self.layers, x, mask, timespans)
        return flat_positions(sequence_module.run_all_at(self.layers, x, at, mask, timespans))

    def _extend(
        self,
        x: Tensor,
        state: State,
        mask: Tensor | None,
        timespans: TensorLike | None,
        at: Positions | None,
    ) -> tuple[Tensor, State]:
        """Return the output of the last layer, and the states of the layers."""
        if at is None:
            return sequence_module.extend_all(self.layers, x, state, mask, timespans)
        mixing, tail = sequence_module.split_tail(self.layers)
        states, rest = state[: len(mixing)], state[len(mixing) :]
        y, states = sequence_module.extend_all(mixing, x, states, mask, timespans)
        y = sequence_module.run_all(tail, sequence_module.take_positions(y, at))
        return flat_positions(y), (*states, *rest)

    def initial_state(self, batch: int) -> State:
        """Return the states of the layers before the first position."""
        return sequence_module.initial_states(self.layers, batch)

    def step(
        self, x: Tensor, state: State, timespan: TensorLike | None = None
    ) -> tuple[Tensor, State]:
        """Return the output at one position, and the next states of the layers."""
        self._check_states(state)
        return sequence_module.step_all(self.layers, x, state, timespan)

    def _check_states(self, state: State) -> None:
        if len(state) != len(self.layers):
            raise ShapeError(
                f"{type(self).__name__} {self.name!r}: got {len(state)} states for "
                f"{len(self.layers)} layers"
            )
