"""Attention: layers whose positions look each other up."""

from ember_ml.nn.layers.sequence_mixing.attention.base import BaseAttention as BaseAttention
from ember_ml.nn.layers.sequence_mixing.attention.causal import CausalAttention as CausalAttention
from ember_ml.nn.layers.sequence_mixing.attention.causal import (
    GroupedQueryAttention as GroupedQueryAttention,
)
from ember_ml.nn.layers.sequence_mixing.attention.cross import CrossAttention as CrossAttention
from ember_ml.nn.layers.sequence_mixing.attention.multi_head import (
    MultiHeadAttention as MultiHeadAttention,
)
from ember_ml.nn.layers.sequence_mixing.attention.self_attention import Attention as Attention
from ember_ml.nn.layers.sequence_mixing.attention.self_attention import (
    SelfAttention as SelfAttention,
)
from ember_ml.nn.layers.sequence_mixing.attention.sliding_window import (
    MultiHeadSlidingWindowAttention as MultiHeadSlidingWindowAttention,
)
from ember_ml.nn.layers.sequence_mixing.attention.sliding_window import (
    SlidingWindowAttention as SlidingWindowAttention,
)
