"""Recurrent layers and their cells."""

from ember_ml.nn.layers.sequence_mixing.recurrent.base import Recurrent
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import RecurrentCell
from ember_ml.nn.layers.sequence_mixing.recurrent.closed_form import CfCCell
from ember_ml.nn.layers.sequence_mixing.recurrent.continuous import LTC, CfC, WiredCfC
from ember_ml.nn.layers.sequence_mixing.recurrent.gated import (
    GRUCell,
    LSTMCell,
    MinGRUCell,
    RNNCell,
)
from ember_ml.nn.layers.sequence_mixing.recurrent.layers import GRU, LSTM, RNN, MinGRU
from ember_ml.nn.layers.sequence_mixing.recurrent.liquid import LTCCell
from ember_ml.nn.layers.sequence_mixing.recurrent.memory import MixedMemoryCell
from ember_ml.nn.layers.sequence_mixing.recurrent.spatial import MaskedRNNCell, SpatialRNN
from ember_ml.nn.layers.sequence_mixing.recurrent.wired import WiredCfCCell

__all__ = [
    "GRU",
    "LSTM",
    "LTC",
    "RNN",
    "CfC",
    "CfCCell",
    "GRUCell",
    "LSTMCell",
    "LTCCell",
    "MaskedRNNCell",
    "MinGRU",
    "MinGRUCell",
    "MixedMemoryCell",
    "RNNCell",
    "Recurrent",
    "RecurrentCell",
    "SpatialRNN",
    "WiredCfC",
    "WiredCfCCell",
]
