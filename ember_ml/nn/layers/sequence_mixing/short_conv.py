"""Causal convolutions with few taps."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import OptionalActivationField, Size
from ember_ml.nn import activations
from ember_ml.nn.initializers import Uniform
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, zeros_beside
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


class Taps(Module):
    """The filters of a causal convolution of single channels: (batch, channels, time) in and out.

    Args:
        channels: how many there are.
        kernel_size: how many positions a filter sees, the present one among them.
        bias: whether a number is added to each channel.
    """

    def __init__(self, channels: int, kernel_size: int, bias: bool = True) -> None:
        self.channels = channels
        self.kernel_size = kernel_size
        uniform = Uniform(-(kernel_size**-0.5), kernel_size**-0.5)
        self.weight = Parameter(uniform((channels, kernel_size)))
        self.bias = Parameter(uniform((channels,)), decay=False) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """The channels filtered."""
        return ops.causal_conv1d(x, self.weight, self.bias) if x.size else x

    def initial_state(self, batch: int) -> Tensor:
        """The inputs before the first one: zeros, (batch, channels, kernel_size - 1)."""
        return zeros_beside(self.weight, (batch, self.channels, self.kernel_size - 1))

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """The output at one position, (batch, channels), and the last inputs."""
        seen = ops.concat([state, ops.expand_dims(x, -1)], axis=-1)
        y = ops.sum(seen * self.weight, axis=-1)
        return y if self.bias is None else y + self.bias, seen[..., 1:]


@register("layers/short_conv", aliases=["short-conv"])
class ShortConv(SequenceMixer):
    r"""Each channel filtered by itself, with a few taps.

    .. math:: y_t = \phi\Big(\sum_{k=0}^{K-1} w_{K-1-k} \odot x_{t-k} + b\Big)

    Args:
        features: the number of channels.
        kernel_size: K, how many positions a filter sees, the present one among them.
        bias: whether there is a b.
        activation: phi; none if not given.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> create("layers/short_conv", features=4)(ops.ones((2, 5, 4))).shape
        (2, 5, 4)
    """

    def __init__(
        self,
        features: Size,
        kernel_size: Size = 4,
        bias: bool = True,
        activation: OptionalActivationField = None,
    ) -> None:
        self.features = features
        self.taps = Taps(features, kernel_size, bias)
        self.activation = None if activation is None else activations.get(activation)

    @property
    def state_size(self) -> int:
        """The inputs that a later position still sees."""
        return self.features * (self.taps.kernel_size - 1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence filtered."""
        self.check_sequence(x, mask)
        if mask is not None:
            x = ops.where(ops.expand_dims(mask, -1), x, 0.0)
        y = ops.swapaxes(self.taps(ops.swapaxes(x, 1, 2)), 1, 2)
        return y if self.activation is None else self.activation(y)

    def initial_state(self, batch: int) -> Tensor:
        """No inputs yet: zeros."""
        return self.taps.initial_state(batch)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """The output of one position, and the last inputs."""
        y, state = self.taps.step(x, state)
        return y if self.activation is None else self.activation(y), state
