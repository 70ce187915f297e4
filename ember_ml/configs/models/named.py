"""Configs of the language models that are named after their blocks."""

from __future__ import annotations

from typing import ClassVar, Literal

from ember_ml.configs.base import Config
from ember_ml.configs.blocks.base import Norm
from ember_ml.configs.fields import (
    ActivationField,
    Below1,
    Count,
    Flag,
    PositionEncoding,
    Positive,
    RouterName,
    Size,
)
from ember_ml.configs.models.base import PositionEmbedding
from ember_ml.configs.patterns import LayersField


class NamedFields(Config):
    """What language models of one kind of block have."""

    vocab_size: Size
    hidden_size: Size = 128
    num_layers: Size = 2
    norm: Norm = "rms_norm"
    dropout: Below1 = 0.0
    stochastic_depth: Below1 = 0.0
    max_length: Size | None = None
    tie_weights: Flag = False


class TransformerModelConfig(NamedFields):
    """Attention and feed-forward layers in turn."""

    component: ClassVar[str] = "models/transformer"
    num_heads: Size = 8
    num_kv_heads: Size | None = None
    inner_size: Size | None = None
    activation: ActivationField = "gelu"
    gated: Flag = False
    window: Count | None = None
    positions: Literal[PositionEncoding, PositionEmbedding] = "rope"
    rope_base: Positive = 10000.0
    bias: Flag = True
    attention_dropout: Below1 = 0.0
    norm_eps: Positive | None = None


class LSTMModelConfig(NamedFields):
    """LSTM blocks."""

    component: ClassVar[str] = "models/lstm"
    inner_size: Size | None = None


class GRUModelConfig(NamedFields):
    """GRU blocks."""

    component: ClassVar[str] = "models/gru"
    inner_size: Size | None = None


class HyenaModelConfig(NamedFields):
    """Hyena blocks."""

    component: ClassVar[str] = "models/hyena"
    num_heads: Size | None = None
    filter_order: Size = 4


class FFTConvModelConfig(NamedFields):
    """Long convolutions."""

    component: ClassVar[str] = "models/fft_conv"


class MambaModelConfig(NamedFields):
    """Mamba blocks."""

    component: ClassVar[str] = "models/mamba"
    d_state: Size = 16
    d_conv: Size = 4
    expand: Size = 2
    version: Literal[1, 2] = 1
    norm_eps: Positive | None = None


class RWKVModelConfig(NamedFields):
    """RWKV blocks."""

    component: ClassVar[str] = "models/rwkv"
    num_heads: Size = 8
    version: Literal[5, 6] = 6
    norm: Norm = "layer_norm"


class MoEModelConfig(NamedFields):
    """Attention and experts in turn."""

    component: ClassVar[str] = "models/moe"
    num_heads: Size = 8
    num_experts: Size = 8
    top_k: Size = 2
    inner_size: Size | None = None
    router: RouterName = "softmax"


class HybridModelConfig(NamedFields):
    """Mixers striped, or side by side."""

    component: ClassVar[str] = "models/hybrid"
    mixers: LayersField = "mamba mamba mamba mh_attention"
    arrangement: Literal["parallel", "striped"] = "striped"


class LiquidModelConfig(Config):
    """Liquid neurons from observations to actions."""

    component: ClassVar[str] = "models/liquid"
    in_features: Size
    out_features: Size
    units: Size = 32
    cell: Literal["ltc", "cfc", "wired_cfc"] = "wired_cfc"
    sparsity_level: Below1 = 0.5
    mixed_memory: Flag = False
    seed: Count = 22222
