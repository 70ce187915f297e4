"""Cells with gates, and the plain one."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn import activations, initializers
from ember_ml.nn.layers.sequence_mixing.base import State
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import HoistedCell, Timespan
from ember_ml.nn.parameter import Parameter


class _GatedCell(HoistedCell):
    """A cell with weights for the input and the state, those of all gates in one matrix."""

    gates: int

    def __init__(self, in_features: int, hidden_size: int, bias: bool = True) -> None:
        self.in_features = in_features
        self.out_features = hidden_size
        self.widths: Any = hidden_size
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(initializers.Glorot()((rows, in_features)))
        self.weight_hh = Parameter(initializers.Orthogonal()((rows, hidden_size)))
        self.bias_ih: Parameter | None = None
        self.bias_hh: Parameter | None = None
        if bias:
            self.bias_ih = Parameter(self._first_bias(hidden_size), decay=False)
            self.bias_hh = Parameter(ops.zeros((rows,)), decay=False)

    def _first_bias(self, hidden_size: int) -> Tensor:
        return ops.zeros((self.gates * hidden_size,))

    def gather(self, timespan: Timespan) -> Any:
        """The weights of the input, its bias, the weights of the state, its bias."""
        return self.weight_ih, self.bias_ih, self.weight_hh, self.bias_hh

    def prepare(self, x: Tensor, made: Any) -> Tensor:
        """The input's part of all gates."""
        return ops.linear(x, made[0], made[1])

    def output(self, state: State, made: Any) -> Tensor:
        """The state itself."""
        out: Tensor = state
        return out


class RNNCell(_GatedCell):
    r"""The plain recurrent cell.

    .. math:: h' = \phi(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})

    Args:
        in_features: the features of x.
        hidden_size: the features of h.
        bias: whether there are biases.
        activation: phi.

    Shape: (batch, in_features), (batch, hidden_size) -> (batch, hidden_size), the same again.

    Example:
        >>> y, h = nn.layers.RNNCell(3, 4)(ops.ones((2, 3)))
        >>> y.shape, h.shape
        ((2, 4), (2, 4))
    """

    gates = 1

    def __init__(
        self, in_features: int, hidden_size: int, bias: bool = True, activation: Any = "tanh"
    ) -> None:
        super().__init__(in_features, hidden_size, bias)
        self.activation = activations.get(activation)

    def advance(self, entry: Any, state: State, timespan: Timespan, made: Any) -> State:
        """The next h."""
        return self.activation(entry + ops.linear(state, made[2], made[3]))


class LSTMCell(_GatedCell):
    r"""The long short-term memory cell.

    .. math::
        i, f, g, o = \sigma, \sigma, \tanh, \sigma (W_{ih} x + b_{ih} + W_{hh} h + b_{hh})

        c' = f \odot c + i \odot g, \quad h' = o \odot \tanh(c')

    The bias of the forget gate f begins at 1.

    Args:
        in_features: the features of x.
        hidden_size: the features of h and c.
        bias: whether there are biases.

    Shape: (batch, in_features), 2 x (batch, hidden_size) -> (batch, hidden_size), the pair again.

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

    def _first_bias(self, hidden_size: int) -> Tensor:
        zeros = ops.zeros((hidden_size,))
        return ops.concat([zeros, ops.ones((hidden_size,)), zeros, zeros])

    def advance(self, entry: Any, state: State, timespan: Timespan, made: Any) -> State:
        """The next h and c."""
        h, c = state
        i, f, g, o = ops.split(entry + ops.linear(h, made[2], made[3]), 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c

    def output(self, state: State, made: Any) -> Tensor:
        """The state h."""
        out: Tensor = state[0]
        return out

    def sweep(
        self, x: Tensor, state: State, timespans: Timespan, mask: Tensor | None, made: Any
    ) -> tuple[Tensor, State]:
        """All steps in one op, where there is no padding."""
        if mask is not None:
            return super().sweep(x, state, timespans, mask, made)
        weight_ih, bias_ih, weight_hh, bias_hh = made
        h, c = state
        y, h, c = ops.lstm(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh)
        return y, (h, c)


class GRUCell(_GatedCell):
    r"""The gated recurrent unit.

    .. math::
        r, z = \sigma(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})

        n = \tanh(W_{in} x + b_{in} + r \odot (W_{hn} h + b_{hn})), \quad
        h' = (1 - z) \odot n + z \odot h

    Args:
        in_features: the features of x.
        hidden_size: the features of h.
        bias: whether there are biases.

    Shape: (batch, in_features), (batch, hidden_size) -> (batch, hidden_size), the same again.

    Reference: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014.

    Example:
        >>> y, h = nn.layers.GRUCell(3, 4)(ops.ones((2, 3)))
        >>> y.shape, h.shape
        ((2, 4), (2, 4))
    """

    gates = 3

    def advance(self, entry: Any, state: State, timespan: Timespan, made: Any) -> State:
        """The next h."""
        r, z, n = ops.split(entry, 3, axis=-1)
        hr, hz, hn = ops.split(ops.linear(state, made[2], made[3]), 3, axis=-1)
        n = ops.tanh(n + ops.sigmoid(r + hr) * hn)
        return n + ops.sigmoid(z + hz) * (state - n)

    def sweep(
        self, x: Tensor, state: State, timespans: Timespan, mask: Tensor | None, made: Any
    ) -> tuple[Tensor, State]:
        """All steps in one op, where there is no padding."""
        if mask is not None:
            return super().sweep(x, state, timespans, mask, made)
        weight_ih, bias_ih, weight_hh, bias_hh = made
        return ops.gru(x, state, weight_ih, weight_hh, bias_ih, bias_hh)


class MinGRUCell(HoistedCell):
    r"""The minimal gated unit, whose gate reads the input alone.

    .. math:: z = \sigma(W_z x + b_z), \quad h' = (1 - z) \odot h + z \odot (W_h x + b_h)

    It is a linear recurrence: a sequence needs no loop over the steps.

    Args:
        in_features: the features of x.
        hidden_size: the features of h.
        bias: whether there are biases.

    Shape: (batch, in_features), (batch, hidden_size) -> (batch, hidden_size), the same again.

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
        draw = initializers.Uniform(-bound, bound)
        self.weight = Parameter(draw((2 * hidden_size, in_features)))
        self.bias = Parameter(ops.zeros((2 * hidden_size,)), decay=False) if bias else None

    def gather(self, timespan: Timespan) -> Any:
        """The weights and the bias of the gate and of what comes in."""
        return self.weight, self.bias

    def prepare(self, x: Tensor, made: Any) -> Any:
        """What is kept of the state, and what is added to it."""
        gate, value = ops.split(ops.linear(x, made[0], made[1]), 2, axis=-1)
        return ops.sigmoid(-gate), ops.sigmoid(gate) * value

    def advance(self, entry: Any, state: State, timespan: Timespan, made: Any) -> State:
        """The next h."""
        return entry[0] * state + entry[1]

    def output(self, state: State, made: Any) -> Tensor:
        """The state itself."""
        out: Tensor = state
        return out

    def sweep(
        self, x: Tensor, state: State, timespans: Timespan, mask: Tensor | None, made: Any
    ) -> tuple[Tensor, State]:
        """All steps as one linear recurrence."""
        keep, new = self.prepare(x, made)
        if mask is not None:
            keep = ops.where(mask[:, :, None], keep, 1.0)
            new = ops.where(mask[:, :, None], new, 0.0)
        return ops.linear_recurrence(keep, new, state)
