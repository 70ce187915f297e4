"""Blocks around recurrent layers."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.blocks.mixers import GRUBlockConfig, LiquidBlockConfig, LSTMBlockConfig
from ember_ml.nn.blocks.base import Block
from ember_ml.nn.blocks.channel import behind
from ember_ml.nn.layers.channel_mixing import Dense
from ember_ml.nn.layers.sequence_mixing.recurrent import (
    GRU,
    LSTM,
    LTC,
    CfC,
    Recurrent,
    WiredCfC,
)
from ember_ml.nn.module import Module
from ember_ml.nn.sequential import Sequential
from ember_ml.nn.wirings import AutoNCP
from ember_ml.registry import build, register


def mapped_back(layer: Recurrent, features: int) -> Module:
    """The layer, and a linear map to so many features if it gives another number."""
    if layer.out_features == features:
        return layer
    return Sequential(layer, Dense(layer.out_features, features))


def liquid(features: int, cell: str, units: int | None, wiring: Any) -> Recurrent:
    """A layer of liquid neurons that gives as many features as it takes."""
    size = units or features
    wiring = None if wiring is None else build("wirings", wiring)
    if cell == "cfc":
        return CfC(features, size, proj_size=None if size == features else features)
    if cell == "ltc":
        given = wiring.output_dim if wiring is not None else size
        projected = None if given == features else features
        return LTC(features, wiring or size, proj_size=projected)
    wiring = wiring or AutoNCP(max(size, 2 * features), features)
    projected = None if wiring.output_dim == features else features
    return WiredCfC(features, wiring, proj_size=projected)


@register("blocks/lstm", config=LSTMBlockConfig)
class LSTMBlock(Block):
    """LSTM, and a channel mixer.

    Args:
        hidden_size: the features in and out.
        inner_size: the features of the state; as many if not given, else they are mapped back.
        num_layers: how many recurrent layers stand on top of each other.
        channel_mixer: the layer behind it: a name, {"type": ...}, or "none".
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> nn.blocks.LSTMBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: int,
        inner_size: int | None = None,
        num_layers: int = 1,
        channel_mixer: Any = "swiglu",
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
    ) -> None:
        cells = LSTM(hidden_size, inner_size, num_layers)
        mixer = mapped_back(cells, hidden_size)
        super().__init__(
            hidden_size=hidden_size,
            layers=(mixer, *behind(channel_mixer)),
            norm=norm,
            dropout=dropout,
            stochastic_depth=stochastic_depth,
        )


@register("blocks/gru", config=GRUBlockConfig)
class GRUBlock(Block):
    """GRU, and a channel mixer.

    Args:
        hidden_size: the features in and out.
        inner_size: the features of the state; as many if not given, else they are mapped back.
        num_layers: how many recurrent layers stand on top of each other.
        channel_mixer: the layer behind it: a name, {"type": ...}, or "none".
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> nn.blocks.GRUBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: int,
        inner_size: int | None = None,
        num_layers: int = 1,
        channel_mixer: Any = "swiglu",
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
    ) -> None:
        cells = GRU(hidden_size, inner_size, num_layers)
        mixer = mapped_back(cells, hidden_size)
        super().__init__(
            hidden_size=hidden_size,
            layers=(mixer, *behind(channel_mixer)),
            norm=norm,
            dropout=dropout,
            stochastic_depth=stochastic_depth,
        )


@register("blocks/liquid", config=LiquidBlockConfig)
class LiquidBlock(Block):
    """Liquid neurons, which mind the time between positions; and a channel mixer if asked for.

    Args:
        hidden_size: the features in and out.
        cell: "cfc", "ltc" or "wired_cfc".
        units: how many neurons there are; as many as features if not given.
        wiring: the synapses of "ltc" and "wired_cfc"; without one, "ltc" has all and
            "wired_cfc" those of an AutoNCP.
        channel_mixer: the layer behind it: a name, {"type": ...}, or "none".
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Hasani et al., "Closed-form continuous-time neural networks", 2022.

    Example:
        >>> nn.blocks.LiquidBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: int,
        cell: str = "cfc",
        units: int | None = None,
        wiring: Any = None,
        channel_mixer: Any = "none",
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
    ) -> None:
        mixer = liquid(hidden_size, cell, units, wiring)
        super().__init__(
            hidden_size=hidden_size,
            layers=(mixer, *behind(channel_mixer)),
            norm=norm,
            dropout=dropout,
            stochastic_depth=stochastic_depth,
        )
