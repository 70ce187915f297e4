"""The block of transformers, and its second half alone."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.blocks.mixers import MLPBlockConfig, TransformerConfig
from ember_ml.configs.fields import PositionEncoding
from ember_ml.nn.blocks.base import Block
from ember_ml.nn.layers.channel_mixing import FeedForward, GatedLinear
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.module import Module
from ember_ml.registry import register


def feed_forward(
    features: int, inner: int | None, activation: Any, gated: bool, bias: bool = False
) -> Module:
    """The layer behind attention, of two matrices or, gated, of three."""
    made = GatedLinear if gated else FeedForward
    return made(features, inner, activation, bias=bias)


@register("blocks/transformer", config=TransformerConfig)
class TransformerBlock(Block):
    """Attention, then a feed-forward layer.

    ::

        x ─┬─ norm ─ attention ─ + ─┬─ norm ─ feed forward ─ + ── y
           └─────────────────────┘  └────────────────────────┘

    Args:
        hidden_size: the features in and out.
        num_heads: how many heads attend.
        num_kv_heads: how many heads of keys and values there are; as many if not given.
        inner_size: features of the feed-forward layer; 4 times the others, or 8/3 if gated, if not
            given.
        activation: of the feed-forward layer.
        gated: whether the feed-forward layer is a gated linear unit.
        causal: whether positions attend to none after them.
        window: how many positions before a position it attends to; to all if not given.
        positions: "rope", "alibi" or "none".
        rope_base: the base of the angles of "rope".
        bias: whether the maps have biases.
        attention_dropout: the share of the weights of attention that training drops.
        placement: whether norms stand before ("pre") or after ("post") the layers.
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        norm_eps: what keeps the norms' denominators from zero; the norm's own if not given.

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
        hidden_size: int,
        num_heads: int = 8,
        num_kv_heads: int | None = None,
        inner_size: int | None = None,
        activation: Any = "gelu",
        gated: bool = False,
        causal: bool = True,
        window: int | None = None,
        positions: PositionEncoding = "rope",
        rope_base: float = 10000.0,
        bias: bool = True,
        attention_dropout: float = 0.0,
        placement: str = "pre",
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        norm_eps: float | None = None,
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
        inner = feed_forward(hidden_size, inner_size, activation, gated, bias)
        super().__init__(
            hidden_size=hidden_size,
            layers=(attention, inner),
            norm=norm,
            placement=placement,
            dropout=dropout,
            stochastic_depth=stochastic_depth,
            norm_eps=norm_eps,
        )


@register("blocks/mlp", config=MLPBlockConfig)
class MLPBlock(Block):
    """A feed-forward layer that its input goes past; positions are not mixed.

    Args:
        hidden_size: the features in and out.
        inner_size: features inside; 4 times the others, or 8/3 if gated, if not given.
        activation: of the features inside.
        gated: whether it is a gated linear unit.
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of what the layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves the layer out.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> nn.blocks.MLPBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: int,
        inner_size: int | None = None,
        activation: Any = "gelu",
        gated: bool = False,
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
    ) -> None:
        inner = feed_forward(hidden_size, inner_size, activation, gated)
        super().__init__(
            hidden_size=hidden_size,
            layers=(inner,),
            norm=norm,
            dropout=dropout,
            stochastic_depth=stochastic_depth,
        )
