"""Long filters that a small network makes of time."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.containers import ModuleList
from ember_ml.nn.initializers import Uniform
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer, Parameter

FAST, SLOW, TARGET = 0.3, 1.5, 0.01  # the share of max_length after which TARGET is left


def dense(in_features: int, out_features: int, bias: bool = True) -> Dense:
    """A dense layer whose first values, its bias's too, are uniform below 1 / sqrt(in)."""
    uniform = Uniform(-(in_features**-0.5), in_features**-0.5)
    return Dense(
        in_features, out_features, bias, kernel_initializer=uniform, bias_initializer=uniform
    )


class HyenaFilter(Module):
    r"""Filters given by a network with sines, under windows that fade at several speeds.

    .. math:: h(t) = e^{-|d| t} \odot W_3 \sin(f W_2 \sin(f W_1 \sin(f W_0 z_t)))

    z holds t, from 0 to 1 over max_length, and the cosine and sine of one turn over it, as its
    first value; it is learned.

    Args:
        channels: the number of filters.
        order: the width of the network.
        max_length: how many taps a filter has.

    Reference: Poli et al., "Hyena Hierarchy", 2023.
    """

    def __init__(self, channels: int, order: int, max_length: int) -> None:
        self.max_length = max_length
        time = ops.linspace(0.0, 1.0, max_length)
        turn = ops.arange(max_length, dtype="float32") * (2 * math.pi / max_length)
        table = ops.stack([time, ops.cos(turn), -ops.sin(turn)], axis=1)
        self.positions = Parameter(table, decay=False)
        self.order = order
        self.frequency = Parameter(ops.ones(order), decay=False)
        self.layers = ModuleList([dense(3, order), dense(order, order), dense(order, order)])
        self.output = dense(order, channels, bias=False)
        slow, fast = (-math.log(TARGET) / share for share in (SLOW, FAST))
        self.decay = Buffer(ops.linspace(slow, fast, channels), persistent=False)
        self.time = Buffer(time, persistent=False)

    def forward(self, length: int) -> Tensor:
        """The first taps of the filters, (channels, length)."""
        length = min(length, self.max_length)
        z = self.positions[:length]
        for layer in self.layers:
            z = ops.sin(self.frequency * layer(z))
        window = ops.exp(-ops.expand_dims(self.decay, 1) * self.time[:length])
        return ops.matmul(self.output.weight, ops.swapaxes(z, 0, 1)) * window
