"""Configs of attention."""

from __future__ import annotations

from typing import ClassVar, Literal

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Below1, Count, Flag, Positive, Size

Positions = Literal["rope", "alibi", "none"]
"""How attention learns of positions: rotations, biases that fall with distance, or not."""


class AttentionConfig(Config):
    """Each position attends to the positions of its own sequence."""

    component: ClassVar[str] = "layers/attention"
    features: Size
    num_heads: Size = 1
    num_kv_heads: Size | None = None
    causal: Flag = True
    window: Count | None = None
    positions: Positions = "rope"
    rope_base: Positive = 10000.0
    bias: Flag = True
    dropout: Below1 = 0.0


class MultiHeadAttentionConfig(AttentionConfig):
    """Attention in 16 heads."""

    component: ClassVar[str] = "layers/mh_attention"
    num_heads: Size = 16


class CausalAttentionConfig(Config):
    """Each position attends to itself and the positions before."""

    component: ClassVar[str] = "layers/causal_attention"
    features: Size
    num_heads: Size = 1
    num_kv_heads: Size | None = None
    positions: Positions = "rope"
    rope_base: Positive = 10000.0
    bias: Flag = True
    dropout: Below1 = 0.0


class GroupedQueryAttentionConfig(CausalAttentionConfig):
    """Causal attention where several heads of queries share keys and values."""

    component: ClassVar[str] = "layers/grouped_query_attention"
    num_heads: Size = 16
    num_kv_heads: Size | None = 4


class SlidingWindowAttentionConfig(Config):
    """Each position attends to itself and a number of positions before."""

    component: ClassVar[str] = "layers/sliding_attention"
    features: Size
    num_heads: Size = 1
    window: Size = 32
    num_kv_heads: Size | None = None
    positions: Positions = "rope"
    rope_base: Positive = 10000.0
    bias: Flag = True
    dropout: Below1 = 0.0


class MultiHeadSlidingWindowAttentionConfig(SlidingWindowAttentionConfig):
    """Attention to a window, in 16 heads."""

    component: ClassVar[str] = "layers/mh_sliding_attention"
    num_heads: Size = 16


class CrossAttentionConfig(Config):
    """Each position attends to the positions of another sequence."""

    component: ClassVar[str] = "layers/cross_attention"
    features: Size
    context_features: Size | None = None
    num_heads: Size = 1
    num_kv_heads: Size | None = None
    bias: Flag = True
    dropout: Below1 = 0.0
