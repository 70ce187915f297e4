"""Layers: what mixes features, and what mixes positions."""

from ember_ml.nn.layers import channel_mixing as channel_mixing
from ember_ml.nn.layers import sequence_mixing as sequence_mixing
from ember_ml.nn.layers.base import Layer as Layer
from ember_ml.nn.layers.channel_mixing import GLU as GLU
from ember_ml.nn.layers.channel_mixing import MLP as MLP
from ember_ml.nn.layers.channel_mixing import BatchNorm as BatchNorm
from ember_ml.nn.layers.channel_mixing import Dense as Dense
from ember_ml.nn.layers.channel_mixing import Dropout as Dropout
from ember_ml.nn.layers.channel_mixing import Embedding as Embedding
from ember_ml.nn.layers.channel_mixing import FeedForward as FeedForward
from ember_ml.nn.layers.channel_mixing import GatedLinear as GatedLinear
from ember_ml.nn.layers.channel_mixing import GeGLU as GeGLU
from ember_ml.nn.layers.channel_mixing import GroupNorm as GroupNorm
from ember_ml.nn.layers.channel_mixing import LayerNorm as LayerNorm
from ember_ml.nn.layers.channel_mixing import MoE as MoE
from ember_ml.nn.layers.channel_mixing import MoEMLP as MoEMLP
from ember_ml.nn.layers.channel_mixing import ReGLU as ReGLU
from ember_ml.nn.layers.channel_mixing import RMSNorm as RMSNorm
from ember_ml.nn.layers.channel_mixing import RWKV5ChannelMixer as RWKV5ChannelMixer
from ember_ml.nn.layers.channel_mixing import RWKV6ChannelMixer as RWKV6ChannelMixer
from ember_ml.nn.layers.channel_mixing import SwiGLU as SwiGLU
from ember_ml.nn.layers.sequence_mixing import GRU as GRU
from ember_ml.nn.layers.sequence_mixing import LRU as LRU
from ember_ml.nn.layers.sequence_mixing import LSTM as LSTM
from ember_ml.nn.layers.sequence_mixing import LTC as LTC
from ember_ml.nn.layers.sequence_mixing import RNN as RNN
from ember_ml.nn.layers.sequence_mixing import S4D as S4D
from ember_ml.nn.layers.sequence_mixing import Attention as Attention
from ember_ml.nn.layers.sequence_mixing import CausalAttention as CausalAttention
from ember_ml.nn.layers.sequence_mixing import CfC as CfC
from ember_ml.nn.layers.sequence_mixing import CfCCell as CfCCell
from ember_ml.nn.layers.sequence_mixing import CrossAttention as CrossAttention
from ember_ml.nn.layers.sequence_mixing import DeltaNet as DeltaNet
from ember_ml.nn.layers.sequence_mixing import FFTConv as FFTConv
from ember_ml.nn.layers.sequence_mixing import GatedDeltaNet as GatedDeltaNet
from ember_ml.nn.layers.sequence_mixing import GatedLinearAttention as GatedLinearAttention
from ember_ml.nn.layers.sequence_mixing import GroupedQueryAttention as GroupedQueryAttention
from ember_ml.nn.layers.sequence_mixing import GRUCell as GRUCell
from ember_ml.nn.layers.sequence_mixing import Hyena as Hyena
from ember_ml.nn.layers.sequence_mixing import HyenaExperts as HyenaExperts
from ember_ml.nn.layers.sequence_mixing import LinearAttention as LinearAttention
from ember_ml.nn.layers.sequence_mixing import LSTMCell as LSTMCell
from ember_ml.nn.layers.sequence_mixing import LTCCell as LTCCell
from ember_ml.nn.layers.sequence_mixing import Mamba as Mamba
from ember_ml.nn.layers.sequence_mixing import Mamba2 as Mamba2
from ember_ml.nn.layers.sequence_mixing import MinGRU as MinGRU
from ember_ml.nn.layers.sequence_mixing import MinGRUCell as MinGRUCell
from ember_ml.nn.layers.sequence_mixing import MixedMemoryCell as MixedMemoryCell
from ember_ml.nn.layers.sequence_mixing import MultiHeadAttention as MultiHeadAttention
from ember_ml.nn.layers.sequence_mixing import (
    MultiHeadGatedLinearAttention as MultiHeadGatedLinearAttention,
)
from ember_ml.nn.layers.sequence_mixing import MultiHeadHyena as MultiHeadHyena
from ember_ml.nn.layers.sequence_mixing import MultiHeadLinearAttention as MultiHeadLinearAttention
from ember_ml.nn.layers.sequence_mixing import (
    MultiHeadSlidingWindowAttention as MultiHeadSlidingWindowAttention,
)
from ember_ml.nn.layers.sequence_mixing import Recurrent as Recurrent
from ember_ml.nn.layers.sequence_mixing import RecurrentCell as RecurrentCell
from ember_ml.nn.layers.sequence_mixing import Retention as Retention
from ember_ml.nn.layers.sequence_mixing import RNNCell as RNNCell
from ember_ml.nn.layers.sequence_mixing import RWKV5TimeMixer as RWKV5TimeMixer
from ember_ml.nn.layers.sequence_mixing import RWKV6TimeMixer as RWKV6TimeMixer
from ember_ml.nn.layers.sequence_mixing import SelfAttention as SelfAttention
from ember_ml.nn.layers.sequence_mixing import SequenceMixer as SequenceMixer
from ember_ml.nn.layers.sequence_mixing import ShortConv as ShortConv
from ember_ml.nn.layers.sequence_mixing import SlidingWindowAttention as SlidingWindowAttention
from ember_ml.nn.layers.sequence_mixing import WiredCfC as WiredCfC
from ember_ml.nn.layers.sequence_mixing import WiredCfCCell as WiredCfCCell
