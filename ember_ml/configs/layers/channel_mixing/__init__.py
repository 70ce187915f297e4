"""Configs of the layers that mix features."""

from ember_ml.configs.layers.channel_mixing.dense import DenseConfig as DenseConfig
from ember_ml.configs.layers.channel_mixing.dense import DropoutConfig as DropoutConfig
from ember_ml.configs.layers.channel_mixing.dense import EmbeddingConfig as EmbeddingConfig
from ember_ml.configs.layers.channel_mixing.dense import MLPConfig as MLPConfig
from ember_ml.configs.layers.channel_mixing.gated_linear import (
    FeedForwardConfig as FeedForwardConfig,
)
from ember_ml.configs.layers.channel_mixing.gated_linear import (
    GatedLinearConfig as GatedLinearConfig,
)
from ember_ml.configs.layers.channel_mixing.gated_linear import GeGLUConfig as GeGLUConfig
from ember_ml.configs.layers.channel_mixing.gated_linear import GLUConfig as GLUConfig
from ember_ml.configs.layers.channel_mixing.gated_linear import ReGLUConfig as ReGLUConfig
from ember_ml.configs.layers.channel_mixing.gated_linear import SwiGLUConfig as SwiGLUConfig
from ember_ml.configs.layers.channel_mixing.moe import MoEConfig as MoEConfig
from ember_ml.configs.layers.channel_mixing.moe import MoEMLPConfig as MoEMLPConfig
from ember_ml.configs.layers.channel_mixing.norms import BatchNormConfig as BatchNormConfig
from ember_ml.configs.layers.channel_mixing.norms import GroupNormConfig as GroupNormConfig
from ember_ml.configs.layers.channel_mixing.norms import LayerNormConfig as LayerNormConfig
from ember_ml.configs.layers.channel_mixing.norms import RMSNormConfig as RMSNormConfig
from ember_ml.configs.layers.channel_mixing.rwkv import (
    RWKV5ChannelMixerConfig as RWKV5ChannelMixerConfig,
)
from ember_ml.configs.layers.channel_mixing.rwkv import (
    RWKV6ChannelMixerConfig as RWKV6ChannelMixerConfig,
)
