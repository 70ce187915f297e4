"""Layers that mix the features of each position."""

from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.dropout import Dropout
from ember_ml.nn.layers.channel_mixing.embedding import Embedding
from ember_ml.nn.layers.channel_mixing.feature_scale import FeatureScale
from ember_ml.nn.layers.channel_mixing.gated_linear import (
    GLU,
    FeedForward,
    GatedLinear,
    GeGLU,
    ReGLU,
    SwiGLU,
)
from ember_ml.nn.layers.channel_mixing.mlp import MLP
from ember_ml.nn.layers.channel_mixing.moe import MoE, MoEMLP
from ember_ml.nn.layers.channel_mixing.norms import BatchNorm, GroupNorm, LayerNorm, RMSNorm
from ember_ml.nn.layers.channel_mixing.quantized import QuantizedDense, QuantizedEmbedding
from ember_ml.nn.layers.channel_mixing.rwkv import RWKV5ChannelMixer, RWKV6ChannelMixer

__all__ = [
    "GLU",
    "MLP",
    "BatchNorm",
    "Dense",
    "Dropout",
    "Embedding",
    "FeatureScale",
    "FeedForward",
    "GatedLinear",
    "GeGLU",
    "GroupNorm",
    "LayerNorm",
    "MoE",
    "MoEMLP",
    "QuantizedDense",
    "QuantizedEmbedding",
    "RMSNorm",
    "RWKV5ChannelMixer",
    "RWKV6ChannelMixer",
    "ReGLU",
    "SwiGLU",
]
