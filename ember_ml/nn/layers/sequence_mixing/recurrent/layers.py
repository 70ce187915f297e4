"""The recurrent layers RNN, LSTM, GRU and minGRU."""

from __future__ import annotations

from ember_ml.configs.fields import ActivationField, Below1, Size
from ember_ml.nn.layers.sequence_mixing.recurrent.base import Recurrent, stack_cells
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import RecurrentCell
from ember_ml.nn.layers.sequence_mixing.recurrent.gated import (
    GRUCell,
    LSTMCell,
    MinGRUCell,
    RNNCell,
)
from ember_ml.registry import register


@register("layers/rnn")
class RNN(Recurrent):
    r"""Elman recurrent layer.

    .. math:: h_t = \phi(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})

    Args:
        features: Number of input features.
        hidden_size: Number of features of the hidden state h. Default: `features`.
        num_layers: Number of stacked layers. Default: 1.
        bidirectional: Whether to also read the sequence backward and concatenate the outputs.
            Default: False.
        bias: Whether to use biases. Default: True.
        dropout: Probability of zeroing an output of any layer but the last during training.
            Default: 0.
        return_sequences: Whether to return all outputs or only the last. Default: True.
        activation: The activation function phi. Default: "tanh".

    Shape: (batch, time, features) -> (batch, time, hidden_size), or 2 * hidden_size if
    bidirectional. The state is (batch, hidden_size).

    Reference: Elman, "Finding structure in time", 1990.

    Example:
        >>> nn.layers.RNN(3, 4)(ops.ones((2, 5, 3))).shape
        (2, 5, 4)
    """

    def __init__(
        self,
        features: Size,
        hidden_size: Size | None = None,
        num_layers: Size = 1,
        bidirectional: bool = False,
        bias: bool = True,
        dropout: Below1 = 0.0,
        return_sequences: bool = True,
        activation: ActivationField = "tanh",
    ) -> None:
        size = hidden_size or features
        cells = stack_cells(
            lambda width: RNNCell(width, size, bias, activation),
            features,
            num_layers,
            bidirectional,
        )
        super().__init__(*cells, dropout, return_sequences)


class _GatedLayer(Recurrent):
    """Base of the layers with gated cells. Subclasses implement `_cell`."""

    def __init__(
        self,
        features: Size,
        hidden_size: Size | None = None,
        num_layers: Size = 1,
        bidirectional: bool = False,
        bias: bool = True,
        dropout: Below1 = 0.0,
        return_sequences: bool = True,
    ) -> None:
        size = hidden_size or features
        cells = stack_cells(
            lambda width: self._cell(width, size, bias), features, num_layers, bidirectional
        )
        super().__init__(*cells, dropout, return_sequences)

    def _cell(self, in_features: int, hidden_size: int, bias: bool) -> RecurrentCell:
        raise NotImplementedError


@register("layers/lstm")
class LSTM(_GatedLayer):
    r"""Long short-term memory.

    .. math::
        i, f, g, o = \sigma, \sigma, \tanh, \sigma
        (W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})

        c_t = f \odot c_{t-1} + i \odot g, \quad h_t = o \odot \tanh(c_t)

    Args:
        features: Number of input features.
        hidden_size: Number of features of h and of c. Default: `features`.
        num_layers: Number of stacked layers. Default: 1.
        bidirectional: Whether to also read the sequence backward and concatenate the outputs.
            Default: False.
        bias: Whether to use biases. The bias of the forget gate f is initialized to 1.
            Default: True.
        dropout: Probability of zeroing an output of any layer but the last during training.
            Default: 0.
        return_sequences: Whether to return all outputs or only the last. Default: True.

    Shape: (batch, time, features) -> (batch, time, hidden_size), or 2 * hidden_size if
    bidirectional. The state is a pair (h, c) of (batch, hidden_size).

    Reference: Hochreiter and Schmidhuber, "Long short-term memory", 1997.

    Example:
        >>> y, (h, c) = nn.layers.LSTM(3, 4).run(ops.ones((2, 5, 3)))
        >>> y.shape, c.shape
        ((2, 5, 4), (2, 4))
    """

    def _cell(self, in_features: int, hidden_size: int, bias: bool) -> RecurrentCell:
        return LSTMCell(in_features, hidden_size, bias)


@register("layers/gru")
class GRU(_GatedLayer):
    r"""Gated recurrent unit.

    .. math::
        r, z = \sigma(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})

        n = \tanh(W_{in} x_t + b_{in} + r \odot (W_{hn} h_{t-1} + b_{hn})), \quad
        h_t = (1 - z) \odot n + z \odot h_{t-1}

    Args:
        features: Number of input features.
        hidden_size: Number of features of the hidden state h. Default: `features`.
        num_layers: Number of stacked layers. Default: 1.
        bidirectional: Whether to also read the sequence backward and concatenate the outputs.
            Default: False.
        bias: Whether to use biases. Default: True.
        dropout: Probability of zeroing an output of any layer but the last during training.
            Default: 0.
        return_sequences: Whether to return all outputs or only the last. Default: True.

    Shape: (batch, time, features) -> (batch, time, hidden_size), or 2 * hidden_size if
    bidirectional. The state is (batch, hidden_size).

    Reference: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014.

    Example:
        >>> nn.layers.GRU(3, 4, bidirectional=True)(ops.ones((2, 5, 3))).shape
        (2, 5, 8)
    """

    def _cell(self, in_features: int, hidden_size: int, bias: bool) -> RecurrentCell:
        return GRUCell(in_features, hidden_size, bias)


@register("layers/min_gru", aliases=["mingru", "min-gru"])
class MinGRU(_GatedLayer):
    r"""Minimal gated recurrent unit: a linear recurrence, computed without a loop over time.

    .. math::
        z = \sigma(W_z x_t + b_z), \quad h_t = (1 - z) \odot h_{t-1} + z \odot (W_h x_t + b_h)

    Args:
        features: Number of input features.
        hidden_size: Number of features of the hidden state h. Default: `features`.
        num_layers: Number of stacked layers. Default: 1.
        bidirectional: Whether to also read the sequence backward and concatenate the outputs.
            Default: False.
        bias: Whether to use biases. Default: True.
        dropout: Probability of zeroing an output of any layer but the last during training.
            Default: 0.
        return_sequences: Whether to return all outputs or only the last. Default: True.

    Shape: (batch, time, features) -> (batch, time, hidden_size), or 2 * hidden_size if
    bidirectional. The state is (batch, hidden_size).

    Reference: Feng et al., "Were RNNs all we needed?", 2024.

    Example:
        >>> nn.layers.MinGRU(3, 4, return_sequences=False)(ops.ones((2, 5, 3))).shape
        (2, 4)
    """

    def _cell(self, in_features: int, hidden_size: int, bias: bool) -> RecurrentCell:
        return MinGRUCell(in_features, hidden_size, bias)
