"""Short causal convolutions."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import OptionalActivationField, Size
from ember_ml.nn import activations
from ember_ml.nn.initializers import Uniform
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, mask_padding, new_zeros
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


class Taps(Module):
    """Depthwise causal convolution of (batch, channels, time).

    Args:
        channels: Number of channels.
        kernel_size: Number of taps: the current position and `kernel_size - 1` before it.
        bias: Whether to add a bias to each channel. Default: True.
    """

    def __init__(self, channels: int, kernel_size: int, bias: bool = True) -> None:
        self.channels = channels
        self.kernel_size = kernel_size
        uniform = Uniform(-(kernel_size**-0.5), kernel_size**-0.5)
        self.weight = Parameter(uniform((channels, kernel_size)))
        self.bias = Parameter(uniform((channels,)), decay=False) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Convolve each channel."""
        return ops.causal_conv1d(x, self.weight, self.bias) if x.size else x

    def initial_state(self, batch: int) -> Tensor:
        """Return the inputs before the first: zeros, (batch, channels, kernel_size - 1)."""
        return new_zeros(self.weight, (batch, self.channels, self.kernel_size - 1))

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output at one position, (batch, channels), and the last inputs."""
        window = ops.concat([state, ops.expand_dims(x, -1)], axis=-1)
        y = ops.sum(window * self.weight, axis=-1)
        return y if self.bias is None else y + self.bias, window[..., 1:]


@register("layers/short_conv", aliases=["short-conv"])
class ShortConv(SequenceMixer):
    r"""Short depthwise causal convolution.

    .. math:: y_t = \phi\Big(\sum_{k=0}^{K-1} w_{K-1-k} \odot x_{t-k} + b\Big)

    Args:
        features: Number of channels.
        kernel_size: Number of taps K. Default: 4.
        bias: Whether to add the bias b. Default: True.
        activation: The activation function phi. Default: none.

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
        """Number of values in the state of one example: the last inputs."""
        return self.features * (self.taps.kernel_size - 1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Convolve the sequence."""
        self.check_sequence(x, mask)
        x = mask_padding(x, mask)
        y = ops.swapaxes(self.taps(ops.swapaxes(x, 1, 2)), 1, 2)
        return y if self.activation is None else self.activation(y)

    def initial_state(self, batch: int) -> Tensor:
        """Return the inputs before the first position: zeros."""
        return self.taps.initial_state(batch)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output at one position and the last inputs."""
        y, state = self.taps.step(x, state)
        return y if self.activation is None else self.activation(y), state
