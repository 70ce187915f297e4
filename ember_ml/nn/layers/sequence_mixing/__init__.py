"""Layers that mix the positions of a sequence."""

from ember_ml.nn.layers.sequence_mixing import attention as attention
from ember_ml.nn.layers.sequence_mixing import recurrent as recurrent
from ember_ml.nn.layers.sequence_mixing.attention import Attention as Attention
from ember_ml.nn.layers.sequence_mixing.attention import CausalAttention as CausalAttention
from ember_ml.nn.layers.sequence_mixing.attention import CrossAttention as CrossAttention
from ember_ml.nn.layers.sequence_mixing.attention import (
    GroupedQueryAttention as GroupedQueryAttention,
)
from ember_ml.nn.layers.sequence_mixing.attention import MultiHeadAttention as MultiHeadAttention
from ember_ml.nn.layers.sequence_mixing.attention import (
    MultiHeadSlidingWindowAttention as MultiHeadSlidingWindowAttention,
)
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention as SelfAttention
from ember_ml.nn.layers.sequence_mixing.attention import (
    SlidingWindowAttention as SlidingWindowAttention,
)
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer as SequenceMixer
from ember_ml.nn.layers.sequence_mixing.delta_net import DeltaNet as DeltaNet
from ember_ml.nn.layers.sequence_mixing.delta_net import GatedDeltaNet as GatedDeltaNet
from ember_ml.nn.layers.sequence_mixing.fft_conv import FFTConv as FFTConv
from ember_ml.nn.layers.sequence_mixing.fft_conv import fft_conv as fft_conv
from ember_ml.nn.layers.sequence_mixing.gated_linear_attention import (
    GatedLinearAttention as GatedLinearAttention,
)
from ember_ml.nn.layers.sequence_mixing.gated_linear_attention import (
    MultiHeadGatedLinearAttention as MultiHeadGatedLinearAttention,
)
from ember_ml.nn.layers.sequence_mixing.hyena import Hyena as Hyena
from ember_ml.nn.layers.sequence_mixing.hyena import MultiHeadHyena as MultiHeadHyena
from ember_ml.nn.layers.sequence_mixing.hyena_experts import HyenaExperts as HyenaExperts
from ember_ml.nn.layers.sequence_mixing.linear_attention import LinearAttention as LinearAttention
from ember_ml.nn.layers.sequence_mixing.linear_attention import (
    MultiHeadLinearAttention as MultiHeadLinearAttention,
)
from ember_ml.nn.layers.sequence_mixing.lru import LRU as LRU
from ember_ml.nn.layers.sequence_mixing.mamba import Mamba as Mamba
from ember_ml.nn.layers.sequence_mixing.mamba2 import Mamba2 as Mamba2
from ember_ml.nn.layers.sequence_mixing.recurrent import GRU as GRU
from ember_ml.nn.layers.sequence_mixing.recurrent import LSTM as LSTM
from ember_ml.nn.layers.sequence_mixing.recurrent import LTC as LTC
from ember_ml.nn.layers.sequence_mixing.recurrent import RNN as RNN
from ember_ml.nn.layers.sequence_mixing.recurrent import CfC as CfC
from ember_ml.nn.layers.sequence_mixing.recurrent import CfCCell as CfCCell
from ember_ml.nn.layers.sequence_mixing.recurrent import GRUCell as GRUCell
from ember_ml.nn.layers.sequence_mixing.recurrent import LSTMCell as LSTMCell
from ember_ml.nn.layers.sequence_mixing.recurrent import LTCCell as LTCCell
from ember_ml.nn.layers.sequence_mixing.recurrent import MinGRU as MinGRU
from ember_ml.nn.layers.sequence_mixing.recurrent import MinGRUCell as MinGRUCell
from ember_ml.nn.layers.sequence_mixing.recurrent import MixedMemoryCell as MixedMemoryCell
from ember_ml.nn.layers.sequence_mixing.recurrent import Recurrent as Recurrent
from ember_ml.nn.layers.sequence_mixing.recurrent import RecurrentCell as RecurrentCell
from ember_ml.nn.layers.sequence_mixing.recurrent import RNNCell as RNNCell
from ember_ml.nn.layers.sequence_mixing.recurrent import WiredCfC as WiredCfC
from ember_ml.nn.layers.sequence_mixing.recurrent import WiredCfCCell as WiredCfCCell
from ember_ml.nn.layers.sequence_mixing.retention import Retention as Retention
from ember_ml.nn.layers.sequence_mixing.rwkv import RWKV5TimeMixer as RWKV5TimeMixer
from ember_ml.nn.layers.sequence_mixing.rwkv import RWKV6TimeMixer as RWKV6TimeMixer
from ember_ml.nn.layers.sequence_mixing.s4d import S4D as S4D
from ember_ml.nn.layers.sequence_mixing.short_conv import ShortConv as ShortConv
