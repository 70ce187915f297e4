"""Causal attention and grouped-query attention."""

from __future__ import annotations

from ember_ml.configs.fields import Below1, PositionEncoding, Positive, Size
from ember_ml.nn.layers.sequence_mixing.attention.self_attention import SelfAttention
from ember_ml.registry import register


@register("layers/causal_attention")
class CausalAttention(SelfAttention):
    r"""Causal self-attention: each position attends to itself and earlier positions.

    .. math:: y_t = W_o \sum_{s \le t} \mathrm{softmax}_s\!\left(\frac{q_t \cdot k_s}{\sqrt{d}}
        \right) v_s

    Args:
        features: Number of input and output features. Must be divisible by `num_heads`.
        num_heads: Number of query heads. Default: 1.
        num_kv_heads: Number of key and value heads, each shared by a group of query heads. Must
            divide `num_heads`. Default: `num_heads`.
        positions: Position encoding: "rope", "alibi" or "none". Default: "rope".
        rope_base: Base of the angles of "rope". Default: 10000.
        bias: Whether the projections have biases. Default: True.
        dropout: Probability of zeroing an attention weight during training. Default: 0.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018.

    Example:
        >>> nn.layers.sequence_mixing.CausalAttention(8, num_heads=2)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 1,
        num_kv_heads: Size | None = None,
        positions: PositionEncoding = "rope",
        rope_base: Positive = 10000.0,
        bias: bool = True,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(
            features, num_heads, num_kv_heads, True, None, positions, rope_base, bias, dropout
        )


@register("layers/grouped_query_attention", aliases=["gqa", "grouped-query-attention"])
class GroupedQueryAttention(CausalAttention):
    r"""Grouped-query attention: groups of query heads share one key and value head.

    .. math:: y_{t,h} = \sum_{s \le t} \mathrm{softmax}_s\!\left(\frac{q_{t,h} \cdot k_{s,g}}
        {\sqrt{d}}\right) v_{s,g}, \quad g = \lfloor h \, H_{kv} / H \rfloor

    Args:
        features: Number of input and output features. Must be divisible by `num_heads`.
        num_heads: Number of query heads. Default: 16.
        num_kv_heads: Number of key and value heads. Must divide `num_heads`; 1 is multi-query
            attention. Default: 4.
        positions: Position encoding: "rope", "alibi" or "none". Default: "rope".
        rope_base: Base of the angles of "rope". Default: 10000.
        bias: Whether the projections have biases. Default: True.
        dropout: Probability of zeroing an attention weight during training. Default: 0.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from
    Multi-Head Checkpoints", 2023.

    Example:
        >>> layer = nn.layers.sequence_mixing.GroupedQueryAttention(8, num_heads=4, num_kv_heads=2)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_per_token
        ((2, 5, 8), 8)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 16,
        num_kv_heads: Size | None = 4,
        positions: PositionEncoding = "rope",
        rope_base: Positive = 10000.0,
        bias: bool = True,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(features, num_heads, num_kv_heads, positions, rope_base, bias, dropout)
