"""Causal attention, and its form with shared keys and values."""

from __future__ import annotations

from ember_ml.configs.fields import Below1, PositionEncoding, Positive, Size
from ember_ml.nn.layers.sequence_mixing.attention.self_attention import SelfAttention
from ember_ml.registry import register


@register("layers/causal_attention")
class CausalAttention(SelfAttention):
    r"""Each position attends to itself and the positions before.

    .. math:: y_t = W_o \sum_{s \le t} \mathrm{softmax}_s\!\left(\frac{q_t \cdot k_s}{\sqrt{d}}
        \right) v_s

    Args:
        features: how many there are.
        num_heads: how many heads of queries share the features.
        num_kv_heads: how many heads of keys and values there are; as many if not given.
        positions: "rope", "alibi" or "none".
        rope_base: the base of the angles of "rope".
        bias: whether the maps have biases.
        dropout: the share of the weights that training drops.

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
    r"""Causal attention where several heads of queries share one head of keys and values.

    .. math:: y_{t,h} = \sum_{s \le t} \mathrm{softmax}_s\!\left(\frac{q_{t,h} \cdot k_{s,g}}
        {\sqrt{d}}\right) v_{s,g}, \quad g = \lfloor h \, H_{kv} / H \rfloor

    Args:
        features: how many there are.
        num_heads: how many heads of queries share the features.
        num_kv_heads: how many heads of keys and values there are; 1 is multi-query attention.
        positions: "rope", "alibi" or "none".
        rope_base: the base of the angles of "rope".
        bias: whether the maps have biases.
        dropout: the share of the weights that training drops.

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
