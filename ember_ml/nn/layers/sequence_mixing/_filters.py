"""Long convolution filters computed by a small network."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.containers import ModuleList
from ember_ml.nn.initializers import Uniform
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.nn.tensor_split import WHOLE, Region

FAST_DECAY, SLOW_DECAY = 0.3, 1.5
"""Fractions of max_length after which the fastest and the slowest window fall to TARGET."""
TARGET = 0.01


def _dense(in_features: int, out_features: int, bias: bool = True) -> Dense:
    """Create a dense layer whose weight and bias are uniform within 1 / sqrt(in_features)."""
    uniform = Uniform(-(in_features**-0.5), in_features**-0.5)
    return Dense(
        in_features, out_features, bias, kernel_initializer=uniform, bias_initializer=uniform
    )


class HyenaFilter(Module):
    r"""Implicit filters: a sine network of time under exponential windows.

    .. math:: h(t) = e^{-|d| t} \odot W_3 \sin(f W_2 \sin(f W_1 \sin(f W_0 z_t)))

    The position embedding z is learned. It is initialized with t, from 0 to 1 over max_length, and
    the cosine and sine of one period over max_length.

    Args:
        channels: Number of filters.
        order: Width of the network.
        max_length: Number of taps of each filter.

    Reference: Poli et al., "Hyena Hierarchy", 2023.
    """

    region: Region = WHOLE
    """Processes that the filters are split among."""

    def __init__(self, channels: int, order: int, max_length: int) -> None:
        self.max_length = max_length
        time = ops.linspace(0.0, 1.0, max_length)
        angle = ops.arange(max_length, dtype="float32") * (2 * math.pi / max_length)
        embedding = ops.stack([time, ops.cos(angle), -ops.sin(angle)], axis=1)
        self.positions = Parameter(embedding, decay=False)
        self.order = order
        self.frequency = Parameter(ops.ones(order), decay=False)
        self.layers = ModuleList([_dense(3, order), _dense(order, order), _dense(order, order)])
        self.output = _dense(order, channels, bias=False)
        slowest, fastest = (-math.log(TARGET) / share for share in (SLOW_DECAY, FAST_DECAY))
        self.decay = Buffer(ops.linspace(slowest, fastest, channels), persistent=False)
        self.time = Buffer(time, persistent=False)

    def forward(self, length: int) -> Tensor:
        """Return the first taps of the filters, (channels, length).

        Args:
            length: Number of taps; at most max_length are returned.
        """
        length = min(length, self.max_length)
        z = self.positions[:length]
        for layer in self.layers:
            z = ops.sin(self.frequency * layer(z))
        z = self.region.enter(z)
        window = ops.exp(-ops.expand_dims(self.decay, 1) * self.time[:length])
        taps = ops.matmul(self.output.weight, ops.swapaxes(z, 0, 1))
        return taps * ops.astype(window, taps.dtype)  # in mixed precision the buffers are float32
