"""The recurrent layers with gates, and the plain one."""

from __future__ import annotations

from ember_ml.configs.fields import ActivationField, Below1, Size
from ember_ml.nn.layers.sequence_mixing.recurrent.base import Recurrent, stack
from ember_ml.nn.layers.sequence_mixing.recurrent.gated import (
    GRUCell,
    LSTMCell,
    MinGRUCell,
    RNNCell,
)
from ember_ml.registry import register


@register("layers/rnn")
class RNN(Recurrent):
    r"""The plain recurrent layer.

    .. math:: h_t = \phi(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})

    Args:
        features: the features of x.
        hidden_size: the features of h; as x if not given.
        num_layers: how many layers stand on top of each other.
        bidirectional: whether others read the sequence from its end; the outputs stand side by
            side.
        bias: whether there are biases.
        dropout: the share of each layer's outputs that training drops, but for the last layer.
        return_sequences: whether all outputs come back, or only the last.
        activation: phi.

    Shape: (batch, time, features) -> (batch, time, hidden_size), twice that if bidirectional. The
    state is (batch, hidden_size).

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
        cells = stack(
            lambda width: RNNCell(width, size, bias, activation),
            features,
            num_layers,
            bidirectional,
        )
        super().__init__(*cells, dropout, return_sequences)


@register("layers/lstm")
class LSTM(Recurrent):
    r"""Long short-term memory.

    .. math::
        i, f, g, o = \sigma, \sigma, \tanh, \sigma
        (W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})

        c_t = f \odot c_{t-1} + i \odot g, \quad h_t = o \odot \tanh(c_t)

    Args:
        features: the features of x.
        hidden_size: the features of h and c; as x if not given.
        num_layers: how many layers stand on top of each other.
        bidirectional: whether others read the sequence from its end; the outputs stand side by
            side.
        bias: whether there are biases; that of f begins at 1.
        dropout: the share of each layer's outputs that training drops, but for the last layer.
        return_sequences: whether all outputs come back, or only the last.

    Shape: (batch, time, features) -> (batch, time, hidden_size), twice that if bidirectional. The
    state is a pair of (batch, hidden_size).

    Reference: Hochreiter and Schmidhuber, "Long short-term memory", 1997.

    Example:
        >>> y, (h, c) = nn.layers.LSTM(3, 4).run(ops.ones((2, 5, 3)))
        >>> y.shape, c.shape
        ((2, 5, 4), (2, 4))
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
    ) -> None:
        size = hidden_size or features
        cells = stack(
            lambda width: LSTMCell(width, size, bias), features, num_layers, bidirectional
        )
        super().__init__(*cells, dropout, return_sequences)


@register("layers/gru")
class GRU(Recurrent):
    r"""Gated recurrent units.

    .. math::
        r, z = \sigma(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})

        n = \tanh(W_{in} x_t + b_{in} + r \odot (W_{hn} h_{t-1} + b_{hn})), \quad
        h_t = (1 - z) \odot n + z \odot h_{t-1}

    Args:
        features: the features of x.
        hidden_size: the features of h; as x if not given.
        num_layers: how many layers stand on top of each other.
        bidirectional: whether others read the sequence from its end; the outputs stand side by
            side.
        bias: whether there are biases.
        dropout: the share of each layer's outputs that training drops, but for the last layer.
        return_sequences: whether all outputs come back, or only the last.

    Shape: (batch, time, features) -> (batch, time, hidden_size), twice that if bidirectional. The
    state is (batch, hidden_size).

    Reference: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014.

    Example:
        >>> nn.layers.GRU(3, 4, bidirectional=True)(ops.ones((2, 5, 3))).shape
        (2, 5, 8)
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
    ) -> None:
        size = hidden_size or features
        cells = stack(lambda width: GRUCell(width, size, bias), features, num_layers, bidirectional)
        super().__init__(*cells, dropout, return_sequences)


@register("layers/min_gru", aliases=["mingru", "min-gru"])
class MinGRU(Recurrent):
    r"""Minimal gated units: a linear recurrence, computed without a loop over the steps.

    .. math::
        z = \sigma(W_z x_t + b_z), \quad h_t = (1 - z) \odot h_{t-1} + z \odot (W_h x_t + b_h)

    Args:
        features: the features of x.
        hidden_size: the features of h; as x if not given.
        num_layers: how many layers stand on top of each other.
        bidirectional: whether others read the sequence from its end; the outputs stand side by
            side.
        bias: whether there are biases.
        dropout: the share of each layer's outputs that training drops, but for the last layer.
        return_sequences: whether all outputs come back, or only the last.

    Shape: (batch, time, features) -> (batch, time, hidden_size), twice that if bidirectional. The
    state is (batch, hidden_size).

    Reference: Feng et al., "Were RNNs all we needed?", 2024.

    Example:
        >>> nn.layers.MinGRU(3, 4, return_sequences=False)(ops.ones((2, 5, 3))).shape
        (2, 4)
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
    ) -> None:
        size = hidden_size or features
        cells = stack(
            lambda width: MinGRUCell(width, size, bias), features, num_layers, bidirectional
        )
        super().__init__(*cells, dropout, return_sequences)
