"""Configs of the layers that mix features."""

from ember_ml.configs.layers.channel_mixing.dense import DenseConfig as DenseConfig
from ember_ml.configs.layers.channel_mixing.dense import DropoutConfig as DropoutConfig
from ember_ml.configs.layers.channel_mixing.dense import EmbeddingConfig as EmbeddingConfig
from ember_ml.configs.layers.channel_mixing.dense import MLPConfig as MLPConfig
from ember_ml.configs.layers.channel_mixing.norms import BatchNormConfig as BatchNormConfig
from ember_ml.configs.layers.channel_mixing.norms import GroupNormConfig as GroupNormConfig
from ember_ml.configs.layers.channel_mixing.norms import LayerNormConfig as LayerNormConfig
from ember_ml.configs.layers.channel_mixing.norms import RMSNormConfig as RMSNormConfig
