"""The base of the blocks."""

from __future__ import annotations

from typing import Any, Self

from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.blocks.base import BlockConfig
from ember_ml.configs.patterns import items_of, sized, width_of
from ember_ml.nn import sequence_module
from ember_ml.nn.blocks.residual import ResidualBlock
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.module import Module
from ember_ml.nn.sequence_module import State
from ember_ml.registry import build, register


@register("blocks/block", config=BlockConfig)
class Block(SequenceMixer):
    """Layers one after the other, each of which its input goes past.

    ::

        x ─┬─ norm ─ layer 0 ─ + ─┬─ norm ─ layer 1 ─ + ── y
           └───────────────────┘  └───────────────────┘

    Blocks among the layers stand as they are: they have their own sums.

    Args:
        name: what it is called in a wiring.
        hidden_size: the features in and out; that of the first layer if not given.
        layers: a pattern such as "attention swiglu", or a list of names, configs and modules.
        residual: whether inputs go past the layers; else there are no norms and no dropout either.
        norm: "rms_norm", "layer_norm" or "none".
        placement: whether norms stand before ("pre") or after ("post") the layers.
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        norm_eps: what keeps the norms' denominators from zero; the norm's own if not given.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> block = nn.blocks.Block("mixer", 8, "attention swiglu")
        >>> block.add_layer("gru").add_layer(nn.layers.MLP(8))(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    ITEMS = "layers"
    _config: Any = None
    _grown = False

    def __init__(
        self,
        name: str = "",
        hidden_size: int | None = None,
        layers: Any = (),
        residual: bool = True,
        norm: str = "rms_norm",
        placement: str = "pre",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        norm_eps: float | None = None,
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

    @property
    def features(self) -> int:  # type: ignore[override]
        """The features in and out."""
        if self.hidden_size is None:
            raise ArgumentError(
                f"{type(self).__name__} {self.name!r}: its width is not known; give hidden_size, "
                "or add a layer that has one"
            )
        return self.hidden_size

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether no layer looks ahead."""
        return sequence_module.all_causal(self.layers)

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether a layer minds the time between positions."""
        return sequence_module.any_uses_timespans(self.layers)

    @property
    def config(self) -> Any:
        """What it was built by, or its layers if some were added since."""
        if not self._grown or self._config is None:
            return self._config
        return BlockConfig(
            name=self.name,
            hidden_size=self.hidden_size,
            layers=tuple(layer.config or layer for layer in self.layers),
            residual=self._residual,
            **self._options,
        )

    @config.setter
    def config(self, config: Any) -> None:
        self._config, self._grown = config, False

    def add_layer(self, layer: Any, stochastic_depth: float | None = None) -> Self:
        """Put a layer at the end.

        Args:
            layer: a name, a config, or a module.
            stochastic_depth: another share than the block's.
        """
        known = sized(layer, self.hidden_size) if self.hidden_size else layer
        made: Module = build("layers" if isinstance(known, str) else "", known)
        if self.hidden_size is None:
            self.hidden_size = width_of(made.config)
        if self._residual and isinstance(made, (Block, ResidualBlock)):
            self._check_width(made)
        if self._residual and not isinstance(made, (Block, ResidualBlock)):
            own = {} if stochastic_depth is None else {"stochastic_depth": stochastic_depth}
            made = ResidualBlock(made, self.features, **{**self._options, **own})
        self.layers.append(made)
        self._grown = True
        return self

    def _check_width(self, block: SequenceMixer) -> None:
        if block.features != self.features:
            raise ArgumentError(
                f"{type(self).__name__} {self.name!r} has hidden_size={self.features}, and "
                f"{type(block).__name__} {block.features}"
            )

    def forward(self, x: Tensor, mask: Tensor | None = None, timespans: Any = None) -> Tensor:
        """The sequence through all layers.

        Args:
            x: (batch, time, hidden_size).
            mask: (batch, time), False where there is padding.
            timespans: the time since the position before, for the layers that mind it.
        """
        if self._residual:
            self.check_sequence(x, mask)
        return sequence_module.run_all(self.layers, x, mask, timespans)

    def initial_state(self, batch: int) -> State:
        """The states of the layers."""
        return sequence_module.initial_states(self.layers, batch)

    def step(self, x: Tensor, state: State, timespan: Any = None) -> tuple[Tensor, State]:
        """One position through all layers, and their states after it."""
        if len(state) != len(self.layers):
            raise ShapeError(
                f"{type(self).__name__} {self.name!r}: {len(state)} states for "
                f"{len(self.layers)} layers"
            )
        return sequence_module.step_all(self.layers, x, state, timespan)
