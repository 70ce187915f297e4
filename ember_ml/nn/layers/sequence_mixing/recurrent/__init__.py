"""Recurrent layers, and the cells they are made of."""

from ember_ml.nn.layers.sequence_mixing.recurrent.base import Recurrent as Recurrent
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import RecurrentCell as RecurrentCell
from ember_ml.nn.layers.sequence_mixing.recurrent.closed_form import CfCCell as CfCCell
from ember_ml.nn.layers.sequence_mixing.recurrent.continuous import LTC as LTC
from ember_ml.nn.layers.sequence_mixing.recurrent.continuous import CfC as CfC
from ember_ml.nn.layers.sequence_mixing.recurrent.continuous import WiredCfC as WiredCfC
from ember_ml.nn.layers.sequence_mixing.recurrent.gated import GRUCell as GRUCell
from ember_ml.nn.layers.sequence_mixing.recurrent.gated import LSTMCell as LSTMCell
from ember_ml.nn.layers.sequence_mixing.recurrent.gated import MinGRUCell as MinGRUCell
from ember_ml.nn.layers.sequence_mixing.recurrent.gated import RNNCell as RNNCell
from ember_ml.nn.layers.sequence_mixing.recurrent.layers import GRU as GRU
from ember_ml.nn.layers.sequence_mixing.recurrent.layers import LSTM as LSTM
from ember_ml.nn.layers.sequence_mixing.recurrent.layers import RNN as RNN
from ember_ml.nn.layers.sequence_mixing.recurrent.layers import MinGRU as MinGRU
from ember_ml.nn.layers.sequence_mixing.recurrent.liquid import LTCCell as LTCCell
from ember_ml.nn.layers.sequence_mixing.recurrent.memory import MixedMemoryCell as MixedMemoryCell
from ember_ml.nn.layers.sequence_mixing.recurrent.wired import WiredCfCCell as WiredCfCCell
