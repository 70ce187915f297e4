"""Layers that mix the positions of a sequence."""

from ember_ml.nn.layers.sequence_mixing import attention, recurrent, spiking
from ember_ml.nn.layers.sequence_mixing.attention import (
    Attention,
    CausalAttention,
    CrossAttention,
    GroupedQueryAttention,
    MultiHeadAttention,
    MultiHeadSlidingWindowAttention,
    SelfAttention,
    SlidingWindowAttention,
)
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.layers.sequence_mixing.delta_net import DeltaNet, GatedDeltaNet
from ember_ml.nn.layers.sequence_mixing.fft_conv import FFTConv, fft_conv
from ember_ml.nn.layers.sequence_mixing.gated_linear_attention import (
    GatedLinearAttention,
    MultiHeadGatedLinearAttention,
)
from ember_ml.nn.layers.sequence_mixing.hyena import Hyena
from ember_ml.nn.layers.sequence_mixing.hyena_experts import HyenaExperts
from ember_ml.nn.layers.sequence_mixing.linear_attention import (
    LinearAttention,
    MultiHeadLinearAttention,
)
from ember_ml.nn.layers.sequence_mixing.lru import LRU
from ember_ml.nn.layers.sequence_mixing.mamba import Mamba
from ember_ml.nn.layers.sequence_mixing.mamba2 import Mamba2
from ember_ml.nn.layers.sequence_mixing.multi_head_hyena import MultiHeadHyena
from ember_ml.nn.layers.sequence_mixing.recurrent import *  # noqa: F403
from ember_ml.nn.layers.sequence_mixing.retention import Retention
from ember_ml.nn.layers.sequence_mixing.rg_lru import RGLRU
from ember_ml.nn.layers.sequence_mixing.rwkv import RWKV5TimeMixer, RWKV6TimeMixer
from ember_ml.nn.layers.sequence_mixing.s4d import S4D
from ember_ml.nn.layers.sequence_mixing.short_conv import ShortConv
from ember_ml.nn.layers.sequence_mixing.spiking import *  # noqa: F403

__all__ = [
    "LRU",
    "RGLRU",
    "S4D",
    "Attention",
    "CausalAttention",
    "CrossAttention",
    "DeltaNet",
    "FFTConv",
    "GatedDeltaNet",
    "GatedLinearAttention",
    "GroupedQueryAttention",
    "Hyena",
    "HyenaExperts",
    "LinearAttention",
    "Mamba",
    "Mamba2",
    "MultiHeadAttention",
    "MultiHeadGatedLinearAttention",
    "MultiHeadHyena",
    "MultiHeadLinearAttention",
    "MultiHeadSlidingWindowAttention",
    "RWKV5TimeMixer",
    "RWKV6TimeMixer",
    "Retention",
    "SelfAttention",
    "SequenceMixer",
    "ShortConv",
    "SlidingWindowAttention",
    "attention",
    "fft_conv",
    "recurrent",
    "spiking",
]
__all__ += recurrent.__all__
__all__ += spiking.__all__
