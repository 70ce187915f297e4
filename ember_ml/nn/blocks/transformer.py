"""Transformer blocks."""

from __future__ import annotations

from typing import Unpack

from ember_ml.configs.fields import (
    ActivationField,
    Below1,
    ComponentLike,
    Count,
    PositionEncoding,
    Positive,
    Size,
)
from ember_ml.nn.blocks.base import Block, BlockOptions
from ember_ml.nn.blocks.residual import Placement
from ember_ml.nn.layers.channel_mixing import FeedForward, GatedLinear
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.registry import register


def feed_forward(
    features: int, inner: int | None, activation: ComponentLike, gated: bool, bias: bool = False
) -> FeedForward | GatedLinear:
    """Return a feed-forward layer of two matrices, or of three if `gated`."""
    layer_cls = GatedLinear if gated else FeedForward
    return layer_cls(features, inner, activation, bias=bias)


@register("blocks/transformer", config_name="TransformerConfig")
class TransformerBlock(Block):
    """Transformer block: self-attention, then a feed-forward layer.

    ::

        x ─┬─ norm ─ attention ─ + ─┬─ norm ─ feed forward ─ + ── y
           └─────────────────────┘  └────────────────────────┘

    Args:
        hidden_size: Number of input and output features.
        num_heads: Number of attention heads.
        num_kv_heads: Number of key and value heads. Default: `num_heads`.
        inner_size: Hidden features of the feed-forward layer. Default: 4 times `hidden_size`, or
            8/3 times if `gated`.
        activation: Activation of the feed-forward layer.
        gated: Whether the feed-forward layer is a gated linear unit.
        causal: Whether attention is causal.
        window: Number of previous positions that a position attends to. Default: all.
        positions: Position encoding: "rope", "alibi" or "none".
        rope_base: Base of the rotary frequencies.
        bias: Whether the linear maps have biases.
        attention_dropout: Dropout probability of the attention weights.
        placement: Where norms are applied: "pre", "post", "output" or "sandwich"; see
            `Block`.
        options: `norm`, `dropout`, `stochastic_depth` and `norm_eps`, as in `Block`.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Vaswani et al., "Attention Is All You Need", 2017.

    Example:
        >>> from ember_ml.configs.blocks import TransformerConfig
        >>> config = TransformerConfig(hidden_size=16, num_heads=8, dropout=0.1, activation="gelu")
        >>> nn.blocks.TransformerBlock(config=config)(ops.ones((2, 5, 16))).shape
        (2, 5, 16)
    """

    def __init__(
        self,
        hidden_size: Size,
        num_heads: Size = 8,
        num_kv_heads: Size | None = None,
        inner_size: Size | None = None,
        activation: ActivationField = "gelu",
        gated: bool = False,
        causal: bool = True,
        window: Count | None = None,
        positions: PositionEncoding = "rope",
        rope_base: Positive = 10000.0,
        bias: bool = True,
        attention_dropout: Below1 = 0.0,
        placement: Placement = "pre",
        **options: Unpack[BlockOptions],
    ) -> None:
        attention = SelfAttention(
            hidden_size,
            num_heads,
            num_kv_heads,
            causal,
            window,
            positions,
            rope_base,
            bias,
            attention_dropout,
        )
        layers = (attention, feed_forward(hidden_size, inner_size, activation, gated, bias))
        super().__init__(hidden_size=hidden_size, layers=layers, placement=placement, **options)


@register("blocks/mlp")
class MLPBlock(Block):
    """Feed-forward layer with a residual connection; it does not mix positions.

    Args:
        hidden_size: Number of input and output features.
        inner_size: Hidden features of the layer. Default: 4 times `hidden_size`, or 8/3 times if
            `gated`.
        activation: Activation of the hidden features.
        gated: Whether the layer is a gated linear unit.
        options: `norm`, `dropout`, `stochastic_depth` and `norm_eps`, as in `Block`.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> nn.blocks.MLPBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: Size,
        inner_size: Size | None = None,
        activation: ActivationField = "gelu",
        gated: bool = False,
        **options: Unpack[BlockOptions],
    ) -> None:
        layer = feed_forward(hidden_size, inner_size, activation, gated)
        super().__init__(hidden_size=hidden_size, layers=(layer,), **options)
