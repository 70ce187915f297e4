"""Language models that repeat one block: presets of `LanguageModel`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict, Unpack

from ember_ml._core import deferred
from ember_ml.configs.fields import (
    ActivationField,
    Below1,
    Count,
    NormName,
    Positive,
    RouterName,
    Size,
)
from ember_ml.configs.patterns import LayersField
from ember_ml.nn.blocks.base import NormOption
from ember_ml.nn.models.language import LanguageModel
from ember_ml.registry import register


class ModelOptions(TypedDict, total=False):
    """Options that the presets share, except the norm; see `LanguageModel`."""

    dropout: Below1
    stochastic_depth: Below1
    max_length: Size | None
    tie_weights: bool
    norm_eps: Positive | None


class PresetOptions(NormOption, ModelOptions, total=False):
    """Options that the presets share; see `LanguageModel`."""


_BLOCK_OPTIONS = ("norm", "dropout", "stochastic_depth", "norm_eps")


class Preset(LanguageModel):
    """Language model that repeats one block.

    Args:
        block: The block, as {"type": name} and its own options.
        num_layers: Number of blocks.
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position.
        positions: What is added to the embeddings, as in `LanguageModel`.
        options: `norm`, `dropout`, `stochastic_depth` and `norm_eps`, of the model and its blocks;
            `max_length` and `tie_weights`, of the model.
    """

    def __init__(
        self,
        block: Mapping[str, object],
        num_layers: int,
        vocab_size: int,
        hidden_size: int,
        positions: Literal["none", "learned", "sinusoidal"] = "none",
        **options: Unpack[PresetOptions],
    ) -> None:
        shared = {key: value for key, value in options.items() if key in _BLOCK_OPTIONS}
        # the config of a layer has about 1 kB
        deferred.reserve(256 * num_layers, f"a model of {num_layers} layers")
        layers = [{**block, **shared}] * num_layers
        super().__init__(layers, vocab_size, hidden_size, positions=positions, **options)


@register("models/transformer")
class TransformerModel(Preset):
    """Transformer: a language model of `TransformerBlock`s.

    Args:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position.
        num_layers: Number of blocks.
        num_heads: Number of attention heads.
        num_kv_heads: Number of key and value heads. Default: `num_heads`.
        inner_size: Hidden features of the feed-forward layers. Default: 4 times `hidden_size`, or
            8/3 times if `gated`.
        activation: Activation of the feed-forward layers.
        gated: Whether the feed-forward layers are gated linear units.
        window: Number of previous positions that a position attends to. Default: all.
        positions: Position encoding: "rope" or "alibi" in the attention layers; "learned" or
            "sinusoidal" embeddings, which need `max_length`; or "none".
        rope_base: Base of the rotary frequencies.
        bias: Whether the linear maps have biases.
        attention_dropout: Dropout probability of the attention weights.
        options: `norm`, `dropout`, `stochastic_depth`, `max_length`, `tie_weights` and `norm_eps`,
            as in `LanguageModel`.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Vaswani et al., "Attention Is All You Need", 2017.

    Example:
        >>> nn.models.TransformerModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: Size,
        hidden_size: Size = 128,
        num_layers: Size = 2,
        num_heads: Size = 8,
        num_kv_heads: Size | None = None,
        inner_size: Size | None = None,
        activation: ActivationField = "gelu",
        gated: bool = False,
        window: Count | None = None,
        positions: Literal["rope", "alibi", "none", "learned", "sinusoidal"] = "rope",
        rope_base: Positive = 10000.0,
        bias: bool = True,
        attention_dropout: Below1 = 0.0,
        **options: Unpack[PresetOptions],
    ) -> None:
        in_attention = positions == "rope" or positions == "alibi"
        block = {
            "type": "blocks/transformer",
            "num_heads": num_heads,
            "num_kv_heads": num_kv_heads,
            "inner_size": inner_size,
            "activation": activation,
            "gated": gated,
            "window": window,
            "positions": positions if in_attention else "none",
            "rope_base": rope_base,
            "bias": bias,
            "attention_dropout": attention_dropout,
        }
        embedded: Literal["none", "learned", "sinusoidal"]
        embedded = "none" if positions == "rope" or positions == "alibi" else positions
        super().__init__(block, num_layers, vocab_size, hidden_size, embedded, **options)


@register("models/moe")
class MoEModel(Preset):
    """Transformer whose feed-forward layers are mixtures of experts: `MoEBlock`s.

    Args:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position.
        num_layers: Number of blocks.
        num_heads: Number of attention heads.
        num_experts: Number of experts per layer.
        top_k: Number of experts per position.
        inner_size: Hidden features of each expert. Default: the expert's own.
        router: "softmax", "sigmoid", "noisy", "top_p" or "expert_choice".
        options: `norm`, `dropout`, `stochastic_depth`, `max_length`, `tie_weights` and `norm_eps`,
            as in `LanguageModel`.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Fedus et al., "Switch Transformers", 2021.

    Example:
        >>> nn.models.MoEModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: Size,
        hidden_size: Size = 128,
        num_layers: Size = 2,
        num_heads: Size = 8,
        num_experts: Size = 8,
        top_k: Size = 2,
        inner_size: Size | None = None,
        router: RouterName = "softmax",
        **options: Unpack[PresetOptions],
    ) -> None:
        block = {
            "type": "blocks/moe",
            "mixer": {"type": "attention", "num_heads": num_heads},
            "num_experts": num_experts,
            "top_k": top_k,
            "inner_size": inner_size,
            "router": router,
        }
        super().__init__(block, num_layers, vocab_size, hidden_size, **options)


@register("models/hybrid")
class HybridModel(Preset):
    """Language model of several mixers, in sequence or in parallel: `HybridBlock`s.

    Args:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position.
        num_layers: Number of blocks, each with all mixers and their channel mixers.
        mixers: A pattern, or a list of names and {"type": ...}.
        arrangement: "striped" (in sequence) or "parallel".
        options: `norm`, `dropout`, `stochastic_depth`, `max_length`, `tie_weights` and `norm_eps`,
            as in `LanguageModel`.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures", 2024.

    Example:
        >>> nn.models.HybridModel(64, 16, 1, "gru attention")(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: Size,
        hidden_size: Size = 128,
        num_layers: Size = 2,
        mixers: LayersField = "mamba mamba mamba mh_attention",
        arrangement: Literal["parallel", "striped"] = "striped",
        **options: Unpack[PresetOptions],
    ) -> None:
        block = {"type": "blocks/hybrid", "mixers": mixers, "arrangement": arrangement}
        super().__init__(block, num_layers, vocab_size, hidden_size, **options)


@register("models/lstm")
class LSTMModel(Preset):
    """Language model of `LSTMBlock`s.

    Args:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position.
        num_layers: Number of blocks.
        inner_size: Size of the hidden states. Default: `hidden_size`.
        options: `norm`, `dropout`, `stochastic_depth`, `max_length`, `tie_weights` and `norm_eps`,
            as in `LanguageModel`.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Hochreiter and Schmidhuber, "Long short-term memory", 1997.

    Example:
        >>> nn.models.LSTMModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: Size,
        hidden_size: Size = 128,
        num_layers: Size = 2,
        inner_size: Size | None = None,
        **options: Unpack[PresetOptions],
    ) -> None:
        block = {"type": "blocks/lstm", "inner_size": inner_size}
        super().__init__(block, num_layers, vocab_size, hidden_size, **options)


@register("models/gru")
class GRUModel(Preset):
    """Language model of `GRUBlock`s.

    Args:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position.
        num_layers: Number of blocks.
        inner_size: Size of the hidden states. Default: `hidden_size`.
        options: `norm`, `dropout`, `stochastic_depth`, `max_length`, `tie_weights` and `norm_eps`,
            as in `LanguageModel`.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014.

    Example:
        >>> nn.models.GRUModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: Size,
        hidden_size: Size = 128,
        num_layers: Size = 2,
        inner_size: Size | None = None,
        **options: Unpack[PresetOptions],
    ) -> None:
        block = {"type": "blocks/gru", "inner_size": inner_size}
        super().__init__(block, num_layers, vocab_size, hidden_size, **options)


@register("models/hyena")
class HyenaModel(Preset):
    """Language model of `HyenaBlock`s.

    Args:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position.
        num_layers: Number of blocks.
        num_heads: Number of heads of multi-head Hyena. Default: Hyena without heads.
        filter_order: Width of the networks that generate the filters. Default: the layer's own (4,
            or 2 with heads).
        options: `norm`, `dropout`, `stochastic_depth`, `max_length` (the length of the long
            filters, 1280 by default), `tie_weights` and `norm_eps`, as in `LanguageModel`.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Poli et al., "Hyena Hierarchy: Towards Larger Convolutional Language Models", 2023.

    Example:
        >>> nn.models.HyenaModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: Size,
        hidden_size: Size = 128,
        num_layers: Size = 2,
        num_heads: Size | None = None,
        filter_order: Size | None = None,
        **options: Unpack[PresetOptions],
    ) -> None:
        block = {"type": "blocks/hyena", "num_heads": num_heads, "filter_order": filter_order}
        super().__init__(block, num_layers, vocab_size, hidden_size, **options)


@register("models/fft_conv")
class FFTConvModel(Preset):
    """Language model of long convolutions and channel mixers: `FFTConvBlock`s.

    Args:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position.
        num_layers: Number of blocks.
        options: `norm`, `dropout`, `stochastic_depth`, `max_length` (the length of the filters,
            1280 by default), `tie_weights` and `norm_eps`, as in `LanguageModel`.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Example:
        >>> nn.models.FFTConvModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: Size,
        hidden_size: Size = 128,
        num_layers: Size = 2,
        **options: Unpack[PresetOptions],
    ) -> None:
        block = {"type": "blocks/fft_conv"}
        super().__init__(block, num_layers, vocab_size, hidden_size, **options)


@register("models/mamba")
class MambaModel(Preset):
    """Language model of `MambaBlock`s.

    Args:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position.
        num_layers: Number of blocks.
        d_state: State size of each channel. Default: the layer's own (4 for Mamba, 16 for
            Mamba-2).
        d_conv: Kernel size of the short convolutions.
        expand: Number of inner channels, as a multiple of `hidden_size`.
        version: 1 for Mamba, 2 for Mamba-2.
        options: `norm`, `dropout`, `stochastic_depth`, `max_length`, `tie_weights` and `norm_eps`,
            as in `LanguageModel`.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023.

    Example:
        >>> nn.models.MambaModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: Size,
        hidden_size: Size = 128,
        num_layers: Size = 2,
        d_state: Size | None = None,
        d_conv: Size = 4,
        expand: Size = 2,
        version: Literal[1, 2] = 1,
        **options: Unpack[PresetOptions],
    ) -> None:
        block = {
            "type": "blocks/mamba",
            "d_state": d_state,
            "d_conv": d_conv,
            "expand": expand,
            "version": version,
        }
        super().__init__(block, num_layers, vocab_size, hidden_size, **options)


@register("models/rwkv")
class RWKVModel(Preset):
    """Language model of `RWKVBlock`s.

    Args:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position.
        num_layers: Number of blocks.
        num_heads: Number of heads of the states.
        version: 5 or 6.
        norm: Normalization layer: "rms_norm", "layer_norm" or "none".
        options: `dropout`, `stochastic_depth`, `max_length`, `tie_weights` and `norm_eps`, as in
            `LanguageModel`.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Peng et al., "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic
    Recurrence", 2024.

    Example:
        >>> nn.models.RWKVModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: Size,
        hidden_size: Size = 128,
        num_layers: Size = 2,
        num_heads: Size = 8,
        version: Literal[5, 6] = 6,
        norm: NormName = "layer_norm",
        **options: Unpack[ModelOptions],
    ) -> None:
        block = {"type": "blocks/rwkv", "num_heads": num_heads, "version": version}
        super().__init__(block, num_layers, vocab_size, hidden_size, norm=norm, **options)
