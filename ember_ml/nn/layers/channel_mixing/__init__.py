"""Layers that mix the features of each position."""

from ember_ml.nn.layers.channel_mixing.batch_norm import BatchNorm as BatchNorm
from ember_ml.nn.layers.channel_mixing.dense import Dense as Dense
from ember_ml.nn.layers.channel_mixing.dropout import Dropout as Dropout
from ember_ml.nn.layers.channel_mixing.embedding import Embedding as Embedding
from ember_ml.nn.layers.channel_mixing.gated_linear import GLU as GLU
from ember_ml.nn.layers.channel_mixing.gated_linear import FeedForward as FeedForward
from ember_ml.nn.layers.channel_mixing.gated_linear import GatedLinear as GatedLinear
from ember_ml.nn.layers.channel_mixing.gated_linear import GeGLU as GeGLU
from ember_ml.nn.layers.channel_mixing.gated_linear import ReGLU as ReGLU
from ember_ml.nn.layers.channel_mixing.gated_linear import SwiGLU as SwiGLU
from ember_ml.nn.layers.channel_mixing.mlp import MLP as MLP
from ember_ml.nn.layers.channel_mixing.moe import MoE as MoE
from ember_ml.nn.layers.channel_mixing.moe import MoEMLP as MoEMLP
from ember_ml.nn.layers.channel_mixing.norms import GroupNorm as GroupNorm
from ember_ml.nn.layers.channel_mixing.norms import LayerNorm as LayerNorm
from ember_ml.nn.layers.channel_mixing.norms import RMSNorm as RMSNorm
from ember_ml.nn.layers.channel_mixing.rwkv import RWKV5ChannelMixer as RWKV5ChannelMixer
from ember_ml.nn.layers.channel_mixing.rwkv import RWKV6ChannelMixer as RWKV6ChannelMixer
