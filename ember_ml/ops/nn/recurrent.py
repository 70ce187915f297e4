"""Unidirectional recurrent layers over a whole sequence."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dispatch import IndexLike, composite
from ember_ml._core.errors import ArgumentError
from ember_ml._core.rules import DTypeRule
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.backend import cell_shapes
from ember_ml.ops._arguments import as_integer
from ember_ml.ops._composite import in_float32
from ember_ml.ops.nn.gated_cells import _gru_steps, _lstm_steps
from ember_ml.ops.nn.liquid_cells import _closed_form_steps, _liquid_steps

__all__ = ["closed_form", "gru", "liquid", "lstm", "synapses"]

_RULE = DTypeRule("real floating", frozenset({"float"}), lift=True, contraction=True)


@composite(rule=_RULE)
@in_float32
def lstm(
    x: TensorLike,
    h0: TensorLike,
    c0: TensorLike,
    weight_ih: TensorLike,
    weight_hh: TensorLike,
    bias_ih: TensorLike | None = None,
    bias_hh: TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return the states of a long short-term memory.

    .. math::
        i, f, g, o = \sigma, \sigma, \tanh, \sigma (W_{ih} x_t + b_{ih} + W_{hh} h + b_{hh})

        c \leftarrow f \odot c + i \odot g, \quad h \leftarrow o \odot \tanh(c)

    Args:
        x: (batch, time, features).
        h0: Initial hidden state, (batch, hidden).
        c0: Initial cell state, (batch, hidden).
        weight_ih: (4 hidden, features).
        weight_hh: (4 hidden, hidden).
        bias_ih: (4 hidden,). Default: none.
        bias_hh: (4 hidden,). Default: none.

    Returns:
        The hidden states of all steps, (batch, time, hidden), and the last h and c.
    """
    cell_shapes.check_gated("lstm", 4, x, (h0, c0), weight_ih, weight_hh, bias_ih, bias_hh)
    if not x.shape[1]:
        return _no_steps(h0), h0, c0
    bias = bias_ih if bias_hh is None else bias_hh if bias_ih is None else bias_ih + bias_hh
    y, h, c, *_ = _lstm_steps(x, h0, c0, weight_ih, weight_hh, bias)
    return y, h, c


@composite(rule=_RULE)
@in_float32
def gru(
    x: TensorLike,
    h0: TensorLike,
    weight_ih: TensorLike,
    weight_hh: TensorLike,
    bias_ih: TensorLike | None = None,
    bias_hh: TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Return the states of a gated recurrent unit.

    .. math::
        r, z = \sigma(W_{ih} x_t + b_{ih} + W_{hh} h + b_{hh})

        n = \tanh(W_{in} x_t + b_{in} + r \odot (W_{hn} h + b_{hn})), \quad
        h \leftarrow (1 - z) \odot n + z \odot h

    Args:
        x: (batch, time, features).
        h0: Initial hidden state, (batch, hidden).
        weight_ih: (3 hidden, features), for r, z and n.
        weight_hh: (3 hidden, hidden).
        bias_ih: (3 hidden,). Default: none.
        bias_hh: (3 hidden,). Default: none.

    Returns:
        The hidden states of all steps, (batch, time, hidden), and the last one.
    """
    cell_shapes.check_gated("gru", 3, x, (h0,), weight_ih, weight_hh, bias_ih, bias_hh)
    if not x.shape[1]:
        return _no_steps(h0), h0
    y, h, *_ = _gru_steps(x, h0, weight_ih, weight_hh, bias_ih, bias_hh)
    return y, h


def _no_steps(h: Tensor) -> Tensor:
    """Return the states of no steps, (batch, 0, hidden)."""
    return ops.broadcast_to(ops.expand_dims(h, 1), (h.shape[0], 0, h.shape[1]))


@composite(rule=_RULE)
@in_float32
def closed_form(
    x: TensorLike,
    h0: TensorLike,
    weight_hh: TensorLike,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    timespans: TensorLike | None = None,
    gated: bool = True,
) -> Tensor:
    r"""Return the states of closed-form continuous-time units.

    With :math:`z = x_t + W_{hh} h`, or :math:`z = W \tanh(x_t + W_{hh} h) + b` if W is given,
    split into :math:`z_1, z_2, z_3`:

    .. math:: t = \sigma(z_3), \quad h \leftarrow \tanh(z_1) \odot (1 - t) + t \odot \tanh(z_2)

    Args:
        x: Projected input, (batch, time, inner features).
        h0: Initial hidden state, (batch, hidden).
        weight_hh: (inner features, hidden).
        weight: (3 hidden, inner features). Default: none; the inner features are then 3 hidden.
        bias: (3 hidden,), with `weight`.
        timespans: (batch or 1, time, 1). z then has a fourth part, and t is :math:`\sigma(s \, z_3
            + z_4)` with the timespan s.
        gated: Whether to apply the factor 1 - t.

    Returns:
        The hidden states of all steps, (batch, time, hidden).
    """
    cell_shapes.check_closed_form(x, h0, weight_hh, weight, bias, timespans)
    if not x.shape[1]:
        return _no_steps(h0)
    bias = None if weight is None else bias
    return _closed_form_steps(x, h0, weight_hh, weight, bias, timespans, gated)[0]


@composite(rule=_RULE)
@in_float32
def liquid(
    x: TensorLike,
    v0: TensorLike,
    capacity: TensorLike,
    slopes: TensorLike,
    offsets: TensorLike,
    weights: TensorLike,
) -> Tensor:
    r"""Return the potentials of liquid time-constant neurons.

    .. math::
        s = \sigma(A v + b), \quad
        v \leftarrow \frac{c \odot v + x_{t,1} + W_1 s}{c + x_{t,2} + W_2 s}

    Args:
        x: Input currents and conductances, (batch, time, 2 neurons).
        v0: Initial potentials, (batch, neurons).
        capacity: Capacities c, (neurons,).
        slopes: A, (synapses, neurons).
        offsets: b, (synapses,).
        weights: W, (2 neurons, synapses).

    Returns:
        The potentials of all steps, (batch, time, neurons).
    """
    cell_shapes.check_liquid(x, v0, capacity, slopes, offsets, weights)
    if not x.shape[1]:
        return _no_steps(v0)
    return _liquid_steps(x, v0, capacity, slopes, offsets, weights)[0]


@composite(rule=_RULE)
@in_float32
def synapses(
    v: TensorLike,
    slopes: TensorLike,
    offsets: TensorLike,
    weights: TensorLike,
    sources: IndexLike,
    destinations: IndexLike,
    size: int,
) -> Tensor:
    r"""Return synapse activations summed at their destinations.

    .. math:: s_e = \sigma(a_e v_{src(e)} + b_e), \quad y_{k,j} = \sum_{e: dest(e) = j} w_{k,e} s_e

    Args:
        v: Potentials, (..., neurons).
        slopes: a, (synapses,).
        offsets: b, (synapses,).
        weights: w, (kinds, synapses).
        sources: Source neuron of each synapse, (synapses,).
        destinations: Destination of each synapse, (synapses,), below `size`.
        size: Number of destinations.

    Returns:
        The sums, (..., kinds * size), the first kind first.

    Example:
        >>> v, ones = tensor.array([0.0, 100.0]), ops.ones((1, 3))
        >>> synapses(v, ones[0], 0.0 * ones[0], ones, [0, 1, 1], [1, 0, 1], 2).tolist()
        [1.0, 1.5]
    """
    if as_integer("synapses", "size", size) < 0:
        raise ArgumentError(f"synapses: size must be at least 0; got {size}")
    cell_shapes.check_synapses(v, slopes, offsets, weights, sources, destinations)
    read = ops.one_hot(sources, v.shape[-1], dtype=v.dtype) * ops.expand_dims(slopes, 1)
    write = ops.one_hot(destinations, size, axis=0, dtype=v.dtype) * ops.expand_dims(weights, 1)
    write = ops.reshape(write, (weights.shape[0] * size, slopes.shape[0]))
    return ops.linear(ops.sigmoid(ops.linear(v, read, offsets)), write)
