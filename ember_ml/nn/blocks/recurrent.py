"""Blocks of recurrent layers."""

from __future__ import annotations

from typing import ClassVar, Literal, Unpack

from ember_ml.configs.fields import Size, WiringField
from ember_ml.nn.blocks.base import Block, BlockOptions, OptionalLayers, optional_layers
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
from ember_ml.nn.wirings import AutoNCP, NeuronWiring
from ember_ml.registry import build, register


def project(layer: Recurrent, features: int) -> Module:
    """Return the layer, followed by a linear map if its output has another number of features."""
    if layer.out_features == features:
        return layer
    return Sequential(layer, Dense(layer.out_features, features))


def liquid(features: int, cell: str, units: int | None, wiring: object) -> Recurrent:
    """Return a layer of liquid neurons with the same number of input and output features."""
    size = units or features
    neurons: NeuronWiring | None = None if wiring is None else build("wirings", wiring)
    if cell == "cfc":
        return CfC(features, size, proj_size=None if size == features else features)
    if cell == "wired_cfc" and neurons is None:
        neurons = AutoNCP(max(size, 2 * features), features)
    outputs = size if neurons is None else neurons.output_dim
    layer_cls = LTC if cell == "ltc" else WiredCfC
    return layer_cls(features, neurons or size, proj_size=None if outputs == features else features)


class RecurrentBlock(Block):
    """Recurrent layer, then a channel mixer.

    Args:
        hidden_size: Number of input and output features.
        inner_size: Size of the hidden state. Default: `hidden_size`. Another size is followed by a
            linear map.
        num_layers: Number of stacked recurrent layers.
        channel_mixer: Layer after the mixer: a name, {"type": ...} or "none".
        options: `norm`, `dropout`, `stochastic_depth` and `norm_eps`, as in `Block`.
    """

    layer_cls: ClassVar[type[LSTM | GRU]]

    def __init__(
        self,
        hidden_size: Size,
        inner_size: Size | None = None,
        num_layers: Size = 1,
        channel_mixer: OptionalLayers = "swiglu",
        **options: Unpack[BlockOptions],
    ) -> None:
        mixer = project(self.layer_cls(hidden_size, inner_size, num_layers), hidden_size)
        layers = (mixer, *optional_layers(channel_mixer))
        super().__init__(hidden_size=hidden_size, layers=layers, **options)


@register("blocks/lstm")
class LSTMBlock(RecurrentBlock):
    """LSTM, then a channel mixer; the arguments are those of `RecurrentBlock`.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> nn.blocks.LSTMBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    layer_cls = LSTM


@register("blocks/gru")
class GRUBlock(RecurrentBlock):
    """GRU, then a channel mixer; the arguments are those of `RecurrentBlock`.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> nn.blocks.GRUBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    layer_cls = GRU


@register("blocks/liquid")
class LiquidBlock(Block):
    """Liquid neurons, which use the time between positions, with an optional channel mixer.

    Args:
        hidden_size: Number of input and output features.
        cell: "cfc", "ltc" or "wired_cfc".
        units: Number of neurons. Default: `hidden_size`.
        wiring: Synapses of "ltc" and "wired_cfc". Default: fully connected for "ltc", an AutoNCP
            for "wired_cfc".
        channel_mixer: Layer after the mixer: a name, {"type": ...} or "none".
        options: `norm`, `dropout`, `stochastic_depth` and `norm_eps`, as in `Block`.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Hasani et al., "Closed-form continuous-time neural networks", 2022.

    Example:
        >>> nn.blocks.LiquidBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: Size,
        cell: Literal["ltc", "cfc", "wired_cfc"] = "cfc",
        units: Size | None = None,
        wiring: WiringField | None = None,
        channel_mixer: OptionalLayers = "none",
        **options: Unpack[BlockOptions],
    ) -> None:
        mixer = liquid(hidden_size, cell, units, wiring)
        layers = (mixer, *optional_layers(channel_mixer))
        super().__init__(hidden_size=hidden_size, layers=layers, **options)
