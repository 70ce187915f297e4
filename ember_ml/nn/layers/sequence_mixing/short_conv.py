"""Short causal convolutions."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import OptionalActivationField, Size
from ember_ml.nn import activations
from ember_ml.nn.initializers import Uniform
from ember_ml.nn.layers.sequence_mixing.base import (
    SequenceMixer,
    last_positions,
    mask_padding,
    new_zeros,
)
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
        self.kernel_size = kernel_size
        uniform = Uniform(-(kernel_size**-0.5), kernel_size**-0.5)
        self.weight = Parameter(uniform((channels, kernel_size)))
        self.bias = Parameter(uniform((channels,)), decay=False) if bias else None

    @property
    def channels(self) -> int:
        """Number of channels."""
        return self.weight.shape[0]

    def forward(self, x: Tensor) -> Tensor:
        """Convolve each channel."""
        return ops.causal_conv1d(x, self.weight, self.bias) if x.size else x

    def extend(self, x: Tensor, state: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the outputs after earlier inputs, (batch, channels, time), and the last inputs.

        Args:
            x: Input, (batch, channels, time), not empty.
            state: The last inputs before it, (batch, channels, kernel_size - 1).
            mask: Padding mask, (batch, time), with padding last. Default: no padding.
        """
        y = self(x)
        if self.kernel_size == 1:
            return y, state
        earlier = ops.concat([state, ops.zeros_like(state)], axis=-1)
        response = ops.causal_conv1d(earlier, self.weight)[..., self.kernel_size - 1 :]
        missing = x.shape[-1] - response.shape[-1]
        if missing > 0:
            response = ops.pad_constant(response, [(0, 0), (0, 0), (0, missing)])
        return y + response[..., : x.shape[-1]], last_positions(state, x, mask, axis=2)

    def run(
        self, x: Tensor, mask: Tensor | None, state: Tensor | None, silu: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Return the outputs of (batch, time, channels), and with a state the last inputs.

        Args:
            x: Input, (batch, time, channels).
            mask: Padding mask, (batch, time), with padding last. None: no padding.
            state: The last inputs before x. None: zeros.
            silu: Whether SiLU follows the convolution. Default: False.
        """
        x = ops.swapaxes(x, 1, 2)
        if silu and state is None and x.size:
            return ops.swapaxes(ops.causal_conv1d_silu(x, self.weight, self.bias), 1, 2), None
        y, state = (self(x), None) if state is None else self.extend(x, state, mask)
        return ops.swapaxes(ops.silu(y) if silu else y, 1, 2), state

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

    def mix(
        self, x: Tensor, mask: Tensor | None, state: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Convolve the sequence."""
        y, state = self.taps.run(mask_padding(x, mask), mask, state)
        return y if self.activation is None else self.activation(y), state

    def initial_state(self, batch: int) -> Tensor:
        """Return the inputs before the first position: zeros."""
        return self.taps.initial_state(batch)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output at one position and the last inputs."""
        self.check_step(x, state)
        y, state = self.taps.step(x, state)
        return y if self.activation is None else self.activation(y), state
