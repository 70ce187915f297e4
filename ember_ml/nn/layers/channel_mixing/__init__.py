"""Layers that mix the features of each position."""

from ember_ml.nn.layers.channel_mixing.batch_norm import BatchNorm as BatchNorm
from ember_ml.nn.layers.channel_mixing.dense import Dense as Dense
from ember_ml.nn.layers.channel_mixing.dropout import Dropout as Dropout
from ember_ml.nn.layers.channel_mixing.embedding import Embedding as Embedding
from ember_ml.nn.layers.channel_mixing.mlp import MLP as MLP
from ember_ml.nn.layers.channel_mixing.norms import GroupNorm as GroupNorm
from ember_ml.nn.layers.channel_mixing.norms import LayerNorm as LayerNorm
from ember_ml.nn.layers.channel_mixing.norms import RMSNorm as RMSNorm
