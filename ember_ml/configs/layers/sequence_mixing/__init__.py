"""Configs of the layers that mix positions."""

from ember_ml.configs.layers.sequence_mixing.attention import AttentionConfig as AttentionConfig
from ember_ml.configs.layers.sequence_mixing.attention import (
    CausalAttentionConfig as CausalAttentionConfig,
)
from ember_ml.configs.layers.sequence_mixing.attention import (
    CrossAttentionConfig as CrossAttentionConfig,
)
from ember_ml.configs.layers.sequence_mixing.attention import (
    GroupedQueryAttentionConfig as GroupedQueryAttentionConfig,
)
from ember_ml.configs.layers.sequence_mixing.attention import (
    MultiHeadAttentionConfig as MultiHeadAttentionConfig,
)
from ember_ml.configs.layers.sequence_mixing.attention import (
    MultiHeadSlidingWindowAttentionConfig as MultiHeadSlidingWindowAttentionConfig,
)
from ember_ml.configs.layers.sequence_mixing.attention import (
    SlidingWindowAttentionConfig as SlidingWindowAttentionConfig,
)
from ember_ml.configs.layers.sequence_mixing.convolutional import FFTConvConfig as FFTConvConfig
from ember_ml.configs.layers.sequence_mixing.convolutional import HyenaConfig as HyenaConfig
from ember_ml.configs.layers.sequence_mixing.convolutional import (
    HyenaExpertsConfig as HyenaExpertsConfig,
)
from ember_ml.configs.layers.sequence_mixing.convolutional import (
    MultiHeadHyenaConfig as MultiHeadHyenaConfig,
)
from ember_ml.configs.layers.sequence_mixing.convolutional import ShortConvConfig as ShortConvConfig
from ember_ml.configs.layers.sequence_mixing.linear_attention import (
    DeltaNetConfig as DeltaNetConfig,
)
from ember_ml.configs.layers.sequence_mixing.linear_attention import (
    GatedDeltaNetConfig as GatedDeltaNetConfig,
)
from ember_ml.configs.layers.sequence_mixing.linear_attention import (
    GatedLinearAttentionConfig as GatedLinearAttentionConfig,
)
from ember_ml.configs.layers.sequence_mixing.linear_attention import (
    LinearAttentionConfig as LinearAttentionConfig,
)
from ember_ml.configs.layers.sequence_mixing.linear_attention import (
    MultiHeadGatedLinearAttentionConfig as MultiHeadGatedLinearAttentionConfig,
)
from ember_ml.configs.layers.sequence_mixing.linear_attention import (
    MultiHeadLinearAttentionConfig as MultiHeadLinearAttentionConfig,
)
from ember_ml.configs.layers.sequence_mixing.linear_attention import (
    RetentionConfig as RetentionConfig,
)
from ember_ml.configs.layers.sequence_mixing.recurrent import CfCConfig as CfCConfig
from ember_ml.configs.layers.sequence_mixing.recurrent import GRUConfig as GRUConfig
from ember_ml.configs.layers.sequence_mixing.recurrent import LSTMConfig as LSTMConfig
from ember_ml.configs.layers.sequence_mixing.recurrent import LTCConfig as LTCConfig
from ember_ml.configs.layers.sequence_mixing.recurrent import MinGRUConfig as MinGRUConfig
from ember_ml.configs.layers.sequence_mixing.recurrent import RNNConfig as RNNConfig
from ember_ml.configs.layers.sequence_mixing.recurrent import WiredCfCConfig as WiredCfCConfig
from ember_ml.configs.layers.sequence_mixing.rwkv import (
    RWKV5TimeMixerConfig as RWKV5TimeMixerConfig,
)
from ember_ml.configs.layers.sequence_mixing.rwkv import (
    RWKV6TimeMixerConfig as RWKV6TimeMixerConfig,
)
from ember_ml.configs.layers.sequence_mixing.state_space import LRUConfig as LRUConfig
from ember_ml.configs.layers.sequence_mixing.state_space import Mamba2Config as Mamba2Config
from ember_ml.configs.layers.sequence_mixing.state_space import MambaConfig as MambaConfig
from ember_ml.configs.layers.sequence_mixing.state_space import S4DConfig as S4DConfig
