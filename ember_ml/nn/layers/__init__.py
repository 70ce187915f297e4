"""Layers: what mixes features, and what mixes positions."""

from ember_ml.nn.layers import channel_mixing as channel_mixing
from ember_ml.nn.layers.base import Layer as Layer
from ember_ml.nn.layers.channel_mixing import MLP as MLP
from ember_ml.nn.layers.channel_mixing import BatchNorm as BatchNorm
from ember_ml.nn.layers.channel_mixing import Dense as Dense
from ember_ml.nn.layers.channel_mixing import Dropout as Dropout
from ember_ml.nn.layers.channel_mixing import Embedding as Embedding
from ember_ml.nn.layers.channel_mixing import GroupNorm as GroupNorm
from ember_ml.nn.layers.channel_mixing import LayerNorm as LayerNorm
from ember_ml.nn.layers.channel_mixing import RMSNorm as RMSNorm
