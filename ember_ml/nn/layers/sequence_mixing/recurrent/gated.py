"""The cells RNN, LSTM, GRU and minGRU."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple, TypeAlias

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml._core.types import Tree
from ember_ml.configs.fields import ComponentLike
from ember_ml.nn import activations, initializers
from ember_ml.nn.layers.sequence_mixing.base import State, TensorPair
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import HoistedCell, Mask, Timespan
from ember_ml.nn.parameter import Parameter

LinearWeights: TypeAlias = tuple[Tensor, Tensor | None]
"""Weight and bias."""


class GateWeights(NamedTuple):
    """Weights and biases of all gates."""

    weight_ih: Tensor
    bias_ih: Tensor | None
    weight_hh: Tensor
    bias_hh: Tensor | None


class _GatedCell(HoistedCell[GateWeights, Tensor]):
    """Base of the cells with one matrix for the input and one for the state of all gates."""

    gates: ClassVar[int]

    def __init__(self, in_features: int, hidden_size: int, bias: bool = True) -> None:
        self.in_features = in_features
        self.out_features = hidden_size
        self.widths: Tree[int] = hidden_size
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(initializers.Glorot()((rows, in_features)))
        self.weight_hh = Parameter(initializers.Orthogonal()((rows, hidden_size)))
        self.bias_ih: Parameter | None = None
        self.bias_hh: Parameter | None = None
        if bias:
            self.bias_ih = Parameter(self._initial_bias(hidden_size), decay=False)
            self.bias_hh = Parameter(ops.zeros((rows,)), decay=False)

    def _initial_bias(self, hidden_size: int) -> Tensor:
        return ops.zeros((self.gates * hidden_size,))

    def gather(self, timespan: Timespan | None) -> GateWeights:
        """Return the weights and biases."""
        return GateWeights(self.weight_ih, self.bias_ih, self.weight_hh, self.bias_hh)

    def prepare(self, x: Tensor, weights: GateWeights) -> Tensor:
        """Return the contribution of the input to all gates."""
        return ops.linear(x, weights.weight_ih, weights.bias_ih)

    def output(self, state: State, weights: GateWeights) -> Tensor:
        """Return the hidden state h."""
        h: Tensor = state
        return h


class RNNCell(_GatedCell):
    r"""Elman recurrent cell.

    .. math:: h' = \phi(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})

    Args:
        in_features: Number of input features.
        hidden_size: Number of features of the hidden state h.
        bias: Whether to use biases. Default: True.
        activation: The activation function phi. Default: "tanh".

    Shape: (batch, in_features), h (batch, hidden_size) -> (batch, hidden_size), the new h.

    Example:
        >>> y, h = nn.layers.RNNCell(3, 4)(ops.ones((2, 3)))
        >>> y.shape, h.shape
        ((2, 4), (2, 4))
    """

    gates = 1

    def __init__(
        self,
        in_features: int,
        hidden_size: int,
        bias: bool = True,
        activation: ComponentLike = "tanh",
    ) -> None:
        super().__init__(in_features, hidden_size, bias)
        self.activation = activations.get(activation)

    def advance(
        self, entry: Tensor, state: Tensor, timespan: Timespan, weights: GateWeights
    ) -> Tensor:
        """Return the next h."""
        return self.activation(entry + ops.linear(state, weights.weight_hh, weights.bias_hh))


class LSTMCell(_GatedCell):
    r"""Long short-term memory cell.

    .. math::
        i, f, g, o = \sigma, \sigma, \tanh, \sigma (W_{ih} x + b_{ih} + W_{hh} h + b_{hh})

        c' = f \odot c + i \odot g, \quad h' = o \odot \tanh(c')

    The bias of the forget gate f is initialized to 1.

    Args:
        in_features: Number of input features.
        hidden_size: Number of features of h and of c.
        bias: Whether to use biases. Default: True.

    Shape: (batch, in_features), pair (h, c) of (batch, hidden_size) -> (batch, hidden_size), the
    new pair.

    Reference: Hochreiter and Schmidhuber, "Long short-term memory", 1997; Gers et al., "Learning to
    forget", 2000.

    Example:
        >>> y, (h, c) = nn.layers.LSTMCell(3, 4)(ops.ones((2, 3)))
        >>> y.shape, c.shape
        ((2, 4), (2, 4))
    """

    gates = 4

    def __init__(self, in_features: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(in_features, hidden_size, bias)
        self.widths = (hidden_size, hidden_size)

    def _initial_bias(self, hidden_size: int) -> Tensor:
        zeros = ops.zeros((hidden_size,))
        return ops.concat([zeros, ops.ones((hidden_size,)), zeros, zeros])

    def advance(
        self, entry: Tensor, state: TensorPair, timespan: Timespan, weights: GateWeights
    ) -> TensorPair:
        """Return the next h and c."""
        h, c = state
        gates = entry + ops.linear(h, weights.weight_hh, weights.bias_hh)
        i, f, g, o = ops.split(gates, 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c

    def output(self, state: TensorPair, weights: GateWeights) -> Tensor:
        """Return the hidden state h."""
        return state[0]

    def sweep(
        self, x: Tensor, state: TensorPair, timespans: Timespan, mask: Mask, weights: GateWeights
    ) -> tuple[Tensor, TensorPair]:
        """Compute all steps by one op if there is no padding."""
        if mask is not None:
            return super().sweep(x, state, timespans, mask, weights)
        weight_ih, bias_ih, weight_hh, bias_hh = weights
        h, c = state
        y, h, c = ops.lstm(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh)
        return y, (h, c)


class GRUCell(_GatedCell):
    r"""Gated recurrent unit cell.

    .. math::
        r, z = \sigma(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})

        n = \tanh(W_{in} x + b_{in} + r \odot (W_{hn} h + b_{hn})), \quad
        h' = (1 - z) \odot n + z \odot h

    Args:
        in_features: Number of input features.
        hidden_size: Number of features of the hidden state h.
        bias: Whether to use biases. Default: True.

    Shape: (batch, in_features), h (batch, hidden_size) -> (batch, hidden_size), the new h.

    Reference: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014.

    Example:
        >>> y, h = nn.layers.GRUCell(3, 4)(ops.ones((2, 3)))
        >>> y.shape, h.shape
        ((2, 4), (2, 4))
    """

    gates = 3

    def advance(
        self, entry: Tensor, state: Tensor, timespan: Timespan, weights: GateWeights
    ) -> Tensor:
        """Return the next h."""
        r, z, n = ops.split(entry, 3, axis=-1)
        recurrent = ops.linear(state, weights.weight_hh, weights.bias_hh)
        hr, hz, hn = ops.split(recurrent, 3, axis=-1)
        n = ops.tanh(n + ops.sigmoid(r + hr) * hn)
        return n + ops.sigmoid(z + hz) * (state - n)

    def sweep(
        self, x: Tensor, state: Tensor, timespans: Timespan, mask: Mask, weights: GateWeights
    ) -> tuple[Tensor, Tensor]:
        """Compute all steps by one op if there is no padding."""
        if mask is not None:
            return super().sweep(x, state, timespans, mask, weights)
        weight_ih, bias_ih, weight_hh, bias_hh = weights
        return ops.gru(x, state, weight_ih, weight_hh, bias_ih, bias_hh)


class MinGRUCell(HoistedCell[LinearWeights, TensorPair]):
    r"""Minimal gated recurrent unit cell: the gate depends on the input only.

    .. math:: z = \sigma(W_z x + b_z), \quad h' = (1 - z) \odot h + z \odot (W_h x + b_h)

    It is a linear recurrence: a sequence is computed without a loop over time.

    Args:
        in_features: Number of input features.
        hidden_size: Number of features of the hidden state h.
        bias: Whether to use biases. Default: True.

    Shape: (batch, in_features), h (batch, hidden_size) -> (batch, hidden_size), the new h.

    Reference: Feng et al., "Were RNNs all we needed?", 2024.

    Example:
        >>> y, h = nn.layers.MinGRUCell(3, 4)(ops.ones((2, 3)))
        >>> y.shape, h.shape
        ((2, 4), (2, 4))
    """

    def __init__(self, in_features: int, hidden_size: int, bias: bool = True) -> None:
        self.in_features = in_features
        self.out_features = hidden_size
        self.widths = hidden_size
        bound = 1.0 / math.sqrt(in_features)
        uniform = initializers.Uniform(-bound, bound)
        self.weight = Parameter(uniform((2 * hidden_size, in_features)))
        self.bias = Parameter(ops.zeros((2 * hidden_size,)), decay=False) if bias else None

    def gather(self, timespan: Timespan | None) -> LinearWeights:
        """Return the weight and the bias."""
        return self.weight, self.bias

    def prepare(self, x: Tensor, weights: LinearWeights) -> TensorPair:
        """Return the factor 1 - z of the state, and what is added to it."""
        gate, value = ops.split(ops.linear(x, *weights), 2, axis=-1)
        return ops.sigmoid(-gate), ops.sigmoid(gate) * value

    def advance(
        self, entry: TensorPair, state: Tensor, timespan: Timespan, weights: LinearWeights
    ) -> Tensor:
        """Return the next h."""
        return entry[0] * state + entry[1]

    def output(self, state: Tensor, weights: LinearWeights) -> Tensor:
        """Return the hidden state h."""
        return state

    def sweep(
        self, x: Tensor, state: Tensor, timespans: Timespan, mask: Mask, weights: LinearWeights
    ) -> tuple[Tensor, Tensor]:
        """Compute all steps as one linear recurrence."""
        factor, update = self.prepare(x, weights)
        if mask is not None:
            factor = ops.where(mask[:, :, None], factor, 1.0)
            update = ops.where(mask[:, :, None], update, 0.0)
        return ops.linear_recurrence(factor, update, state)
