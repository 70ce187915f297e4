"""Attention layers."""

from ember_ml.nn.layers.sequence_mixing.attention.base import BaseAttention
from ember_ml.nn.layers.sequence_mixing.attention.causal import (
    CausalAttention,
    GroupedQueryAttention,
)
from ember_ml.nn.layers.sequence_mixing.attention.cross import CrossAttention
from ember_ml.nn.layers.sequence_mixing.attention.self_attention import (
    Attention,
    MultiHeadAttention,
    SelfAttention,
)
from ember_ml.nn.layers.sequence_mixing.attention.sliding_window import (
    MultiHeadSlidingWindowAttention,
    SlidingWindowAttention,
)

__all__ = [
    "Attention",
    "BaseAttention",
    "CausalAttention",
    "CrossAttention",
    "GroupedQueryAttention",
    "MultiHeadAttention",
    "MultiHeadSlidingWindowAttention",
    "SelfAttention",
    "SlidingWindowAttention",
]
