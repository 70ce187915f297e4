"""Configs of the blocks that are named after their mixer."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, model_validator

from ember_ml.configs.base import Config
from ember_ml.configs.blocks.base import BlockFields, Placement, check_layers
from ember_ml.configs.fields import (
    ActivationField,
    Below1,
    Count,
    Flag,
    PositionEncoding,
    Positive,
    RouterName,
    Size,
    WiringField,
)
from ember_ml.configs.patterns import LayersField, check_names, items_of

Cell = Literal["ltc", "cfc", "wired_cfc"]


def _channel_mixer(value: Any) -> Any:
    return "none" if value in (None, "none") else check_names(value)


ChannelMixer = Annotated[Any, BeforeValidator(_channel_mixer)]
"""The layer behind the mixer: a name, or {"type": ...}; "none" for none."""


class TransformerConfig(BlockFields):
    """Attention and a feed-forward layer."""

    component: ClassVar[str] = "blocks/transformer"
    num_heads: Size = 8
    num_kv_heads: Size | None = None
    inner_size: Size | None = None
    activation: ActivationField = "gelu"
    gated: Flag = False
    causal: Flag = True
    window: Count | None = None
    positions: PositionEncoding = "rope"
    rope_base: Positive = 10000.0
    bias: Flag = True
    attention_dropout: Below1 = 0.0
    placement: Placement = "pre"
    norm_eps: Positive | None = None


class MLPBlockConfig(BlockFields):
    """A feed-forward layer."""

    component: ClassVar[str] = "blocks/mlp"
    inner_size: Size | None = None
    activation: ActivationField = "gelu"
    gated: Flag = False


class LSTMBlockConfig(BlockFields):
    """LSTM, and a channel mixer."""

    component: ClassVar[str] = "blocks/lstm"
    inner_size: Size | None = None
    num_layers: Size = 1
    channel_mixer: ChannelMixer = "swiglu"


class GRUBlockConfig(LSTMBlockConfig):
    """GRU, and a channel mixer."""

    component: ClassVar[str] = "blocks/gru"


class LiquidBlockConfig(BlockFields):
    """Liquid neurons, and a channel mixer."""

    component: ClassVar[str] = "blocks/liquid"
    cell: Cell = "cfc"
    units: Size | None = None
    wiring: WiringField | None = None
    channel_mixer: ChannelMixer = "none"


class MambaBlockConfig(BlockFields):
    """Mamba, and a channel mixer if one is asked for."""

    component: ClassVar[str] = "blocks/mamba"
    d_state: Size = 16
    d_conv: Size = 4
    expand: Size = 2
    version: Literal[1, 2] = 1
    channel_mixer: ChannelMixer = "none"
    norm_eps: Positive | None = None


class HyenaBlockConfig(BlockFields):
    """Hyena, and a channel mixer."""

    component: ClassVar[str] = "blocks/hyena"
    num_heads: Size | None = None
    max_length: Size = 1280
    filter_order: Size = 4
    channel_mixer: ChannelMixer = "swiglu"


class FFTConvBlockConfig(BlockFields):
    """A long convolution, and a channel mixer."""

    component: ClassVar[str] = "blocks/fft_conv"
    max_length: Size = 1280
    channel_mixer: ChannelMixer = "swiglu"


class RWKVBlockConfig(BlockFields):
    """The time mixer and the channel mixer of RWKV."""

    component: ClassVar[str] = "blocks/rwkv"
    num_heads: Size = 8
    inner_size: Size | None = None
    version: Literal[5, 6] = 6
    norm: Literal["rms_norm", "layer_norm", "none"] = "layer_norm"


class MoEBlockConfig(BlockFields):
    """A mixer, and experts of which each position uses a few."""

    component: ClassVar[str] = "blocks/moe"
    mixer: ChannelMixer = "mh_attention"
    num_experts: Size = 8
    top_k: Size = 2
    expert: Any = "swiglu"
    inner_size: Size | None = None
    router: RouterName = "softmax"


class HybridBlockConfig(BlockFields):
    """Several mixers side by side or in turn, and a channel mixer."""

    component: ClassVar[str] = "blocks/hybrid"
    mixers: LayersField = "mh_attention mamba"
    arrangement: Literal["parallel", "striped"] = "parallel"
    max_length: Size | None = None
    channel_mixer: ChannelMixer = "swiglu"


class ParallelConfig(Config):
    """Several mixers of the same input."""

    component: ClassVar[str] = "blocks/parallel"
    hidden_size: Size
    layers: LayersField
    max_length: Size | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not items_of(self.layers):
            raise ValueError("layers must name at least one mixer")
        check_layers(self.layers, self.hidden_size)
        return self
