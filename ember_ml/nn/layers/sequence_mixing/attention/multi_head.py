"""Attention in many heads."""

from __future__ import annotations

from ember_ml.configs.fields import Below1, Count, PositionEncoding, Positive, Size
from ember_ml.nn.layers.sequence_mixing.attention.self_attention import SelfAttention
from ember_ml.registry import register


@register("layers/mh_attention", aliases=["mh-attention", "multi_head_attention"])
class MultiHeadAttention(SelfAttention):
    r"""Self-attention in 16 heads: each attends with its own share of the features.

    .. math:: y = W_o \, [\mathrm{softmax}(q_1 k_1^\top / \sqrt{d}) v_1, \dots,
        \mathrm{softmax}(q_H k_H^\top / \sqrt{d}) v_H]

    Args:
        features: how many there are.
        num_heads: how many heads of queries share the features.
        num_kv_heads: how many heads of keys and values there are; as many if not given.
        causal: whether a position attends to none after it.
        window: how many positions before a position it attends to; to all if not given.
        positions: "rope", "alibi" or "none".
        rope_base: the base of the angles of "rope".
        bias: whether the maps have biases.
        dropout: the share of the weights that training drops.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Vaswani et al., "Attention Is All You Need", 2017.

    Example:
        >>> nn.layers.sequence_mixing.MultiHeadAttention(32)(ops.ones((2, 5, 32))).shape
        (2, 5, 32)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 16,
        num_kv_heads: Size | None = None,
        causal: bool = True,
        window: Count | None = None,
        positions: PositionEncoding = "rope",
        rope_base: Positive = 10000.0,
        bias: bool = True,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(
            features,
            num_heads,
            num_kv_heads,
            causal,
            window,
            positions,
            rope_base,
            bias,
            dropout,
        )
