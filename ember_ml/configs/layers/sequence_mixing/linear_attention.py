"""Configs of linear attention: states that are sums of products of keys and values."""

from __future__ import annotations

from typing import ClassVar

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Positive, Size


class LinearAttentionConfig(Config):
    """Attention whose weights are products of features of queries and keys."""

    component: ClassVar[str] = "layers/linear_attention"
    features: Size
    num_heads: Size = 1
    eps: Positive = 1e-12


class MultiHeadLinearAttentionConfig(LinearAttentionConfig):
    """Linear attention in 16 heads."""

    component: ClassVar[str] = "layers/mh_linear_attention"
    num_heads: Size = 16


class GatedLinearAttentionConfig(Config):
    """Linear attention whose state decays as the input says."""

    component: ClassVar[str] = "layers/gated_linear_attention"
    features: Size
    num_heads: Size = 1
    gate_rank: Size = 16
    gate_divisor: Positive = 16.0
    eps: Positive = 1e-5


class MultiHeadGatedLinearAttentionConfig(GatedLinearAttentionConfig):
    """Gated linear attention in 8 heads."""

    component: ClassVar[str] = "layers/mh_gated_linear_attention"
    num_heads: Size = 8


class DeltaNetConfig(Config):
    """Linear attention whose state is corrected towards each value."""

    component: ClassVar[str] = "layers/delta_net"
    features: Size
    num_heads: Size = 1
    eps: Positive = 1e-5


class GatedDeltaNetConfig(Config):
    """Linear attention whose state decays and is corrected towards each value."""

    component: ClassVar[str] = "layers/gated_delta_net"
    features: Size
    num_heads: Size = 1
    eps: Positive = 1e-5


class RetentionConfig(Config):
    """Linear attention whose heads decay at fixed rates."""

    component: ClassVar[str] = "layers/retention"
    features: Size
    num_heads: Size = 4
    value_features: Size | None = None
    rope_base: Positive = 10000.0
    eps: Positive = 1e-5
