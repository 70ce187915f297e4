"""Recurrent layers of one direction, over a whole sequence."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dispatch import IndexLike, composite
from ember_ml._core.rules import Rule
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._precision import in_float32

__all__ = ["closed_form", "gru", "liquid", "lstm", "synapses"]

_RULE = Rule("real floating", frozenset({"float"}), lift=True, contraction=True)


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
    r"""Long short-term memory.

    .. math::
        i, f, g, o = \sigma, \sigma, \tanh, \sigma (W_{ih} x_t + b_{ih} + W_{hh} h + b_{hh})

        c \leftarrow f \odot c + i \odot g, \quad h \leftarrow o \odot \tanh(c)

    Args:
        x: (batch, time, features).
        h0: (batch, hidden), the state before the first step.
        c0: (batch, hidden), the memory before the first step.
        weight_ih: (4 hidden, features).
        weight_hh: (4 hidden, hidden).
        bias_ih: (4 hidden,).
        bias_hh: (4 hidden,).

    Returns:
        The states h after each step, (batch, time, hidden), and h and c after the last.
    """
    h, c = h0, c0
    states = []
    for entry in ops.unstack(ops.linear(x, weight_ih, bias_ih), 1):
        i, f, g, o = ops.split(entry + ops.linear(h, weight_hh, bias_hh), 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        states.append(h)
    return _sequence(states, x, h), h, c


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
    r"""Gated recurrent unit.

    .. math::
        r, z = \sigma(W_{ih} x_t + b_{ih} + W_{hh} h + b_{hh})

        n = \tanh(W_{in} x_t + b_{in} + r \odot (W_{hn} h + b_{hn})), \quad
        h \leftarrow (1 - z) \odot n + z \odot h

    Args:
        x: (batch, time, features).
        h0: (batch, hidden), the state before the first step.
        weight_ih: (3 hidden, features), for r, z and n.
        weight_hh: (3 hidden, hidden).
        bias_ih: (3 hidden,).
        bias_hh: (3 hidden,).

    Returns:
        The states after each step, (batch, time, hidden), and the one after the last.
    """
    h = h0
    states = []
    for entry in ops.unstack(ops.linear(x, weight_ih, bias_ih), 1):
        r, z, n = ops.split(entry, 3, axis=-1)
        hr, hz, hn = ops.split(ops.linear(h, weight_hh, bias_hh), 3, axis=-1)
        n = ops.tanh(n + ops.sigmoid(r + hr) * hn)
        h = n + ops.sigmoid(z + hz) * (h - n)
        states.append(h)
    return _sequence(states, x, h), h


def _sequence(states: list[Tensor], x: Tensor, h: Tensor) -> Tensor:
    if states:
        return ops.stack(states, axis=1)
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
    r"""Closed-form continuous-time units.

    With :math:`z = x_t + W_{hh} h`, or, if there is a W, :math:`z = W \tanh(x_t + W_{hh} h) + b`,
    parted into :math:`z_1, z_2, z_3`:

    .. math:: t = \sigma(z_3), \quad h \leftarrow \tanh(z_1) \odot (1 - t) + t \odot \tanh(z_2)

    Args:
        x: (batch, time, inner features), what the input gives.
        h0: (batch, hidden), the state before the first step.
        weight_hh: (inner features, hidden).
        weight: (3 hidden, inner features); without it the inner features are the 3 hidden ones.
        bias: (3 hidden,), with the weight.
        timespans: (batch or 1, time, 1); z has a fourth part then, and t is
            :math:`\sigma(s \, z_3 + z_4)` with the timespan s.
        gated: whether there is the factor 1 - t.

    Returns:
        The states after each step, (batch, time, hidden).
    """
    h, size = h0, h0.shape[-1]
    spans = [None] * x.shape[1] if timespans is None else ops.unstack(timespans, 1)
    states = []
    for entry, span in zip(ops.unstack(x, 1), spans, strict=True):
        z = entry + ops.linear(h, weight_hh)
        if weight is not None:
            z = ops.linear(ops.tanh(z), weight, bias)
        f1, f2 = ops.split(ops.tanh(z[:, : 2 * size]), 2, axis=-1)
        gate = z[:, 2 * size :] if span is None else z[:, 2 * size : -size] * span + z[:, -size:]
        h = f1 + ops.sigmoid(gate) * (f2 - f1 if gated else f2)
        states.append(h)
    return _sequence(states, x, h)


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
    r"""Liquid time-constant neurons.

    .. math::
        s = \sigma(A v + b), \quad
        v \leftarrow \frac{c \odot v + x_{t,1} + W_1 s}{c + x_{t,2} + W_2 s}

    Args:
        x: (batch, time, 2 neurons): the currents that come in, and the conductances.
        v0: (batch, neurons), the potentials before the first step.
        capacity: (neurons,), c.
        slopes: (synapses, neurons), A.
        offsets: (synapses,), b.
        weights: (2 neurons, synapses), W.

    Returns:
        The potentials after each step, (batch, time, neurons).
    """
    v, size = v0, v0.shape[-1]
    states = []
    for entry in ops.unstack(x, 1):
        sums = entry + ops.linear(ops.sigmoid(ops.linear(v, slopes, offsets)), weights)
        v = (capacity * v + sums[:, :size]) / (capacity + sums[:, size:])
        states.append(v)
    return _sequence(states, x, v)


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
    r"""Synapses that open with their sources, summed at their destinations.

    .. math:: s_e = \sigma(a_e v_{src(e)} + b_e), \quad y_{k,j} = \sum_{e: dest(e) = j} w_{k,e} s_e

    Args:
        v: (..., neurons), the potentials that are read.
        slopes: (synapses,), a.
        offsets: (synapses,), b.
        weights: (kinds, synapses), w.
        sources: (synapses,), the neuron that each reads.
        destinations: (synapses,), the place that each adds to, below `size`.
        size: how many places there are.

    Returns:
        The sums, (..., kinds size), those of the first kind first.

    Example:
        >>> v, ones = tensor.array([0.0, 100.0]), ops.ones((1, 3))
        >>> synapses(v, ones[0], 0.0 * ones[0], ones, [0, 1, 1], [1, 0, 1], 2).tolist()
        [1.0, 1.5]
    """
    read = ops.one_hot(sources, v.shape[-1], dtype=v.dtype) * ops.expand_dims(slopes, 1)
    write = ops.one_hot(destinations, size, axis=0, dtype=v.dtype) * ops.expand_dims(weights, 1)
    write = ops.reshape(write, (weights.shape[0] * size, slopes.shape[0]))
    return ops.linear(ops.sigmoid(ops.linear(v, read, offsets)), write)
