"""Long causal convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Size
from ember_ml.nn.initializers import Normal
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, mask_padding
from ember_ml.nn.layers.sequence_mixing.online_conv import ConvState
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register

Kernel: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Function of (batch, channels, time) and filters (channels, taps) to (batch, channels, time)."""

KERNELS: dict[str, Kernel] = {}
"""Fused kernels by device type ("cuda"); they replace `ops.fft_conv` on that device."""


def fft_conv(x: Tensor, kernel: Tensor, skip: Tensor | None = None) -> Tensor:
    r"""Convolve each channel causally with a filter as long as the sequence.

    .. math:: y_t = \sum_{s=0}^{t} h_{t-s} x_s + D x_t

    The convolution uses FFTs of twice the length, O(n log n), or the kernel that `KERNELS` holds
    for the device.

    Args:
        x: Input, (batch, channels, time).
        kernel: Filters h, (channels, taps).
        skip: Skip connection D, (channels,). Default: none.

    Returns:
        The convolution, (batch, channels, time).

    Example:
        >>> from ember_ml.nn.layers.sequence_mixing.fft_conv import fft_conv
        >>> ops.round(fft_conv(ops.ones((1, 1, 3)), tensor.array([[1.0, 2.0, 3.0]]))).tolist()
        [[[1.0, 3.0, 6.0]]]
    """
    if x.size == 0:
        return x
    fused = device_kernel(x)
    return (ops.fft_conv if fused is None else fused)(x, with_skip(kernel, skip))


def long_conv(x: Tensor, kernel: Tensor, skip: Tensor | None = None) -> Tensor:
    """Compute `fft_conv`, by a faster method for many short sequences.

    Args:
        x: Input, (batch, channels, time).
        kernel: Filters, (channels, taps).
        skip: Skip connection, (channels,). Default: none.

    Returns:
        The convolution, (batch, channels, time).
    """
    if x.size == 0:
        return x
    fused = device_kernel(x)
    return (ops.long_conv if fused is None else fused)(x, with_skip(kernel, skip))


def device_kernel(x: Tensor) -> Kernel | None:
    """Return the kernel that `KERNELS` holds for the device of x."""
    return KERNELS.get(str(x.device).partition(":")[0]) if KERNELS else None


def with_skip(kernel: Tensor, skip: Tensor | None) -> Tensor:
    """Return the filters with the skip connection added to their first tap."""
    if skip is None:
        return kernel
    first = ops.expand_dims(skip, 1)
    taps = kernel.shape[-1]
    return kernel + (first if taps == 1 else ops.pad_constant(first, [(0, 0), (0, taps - 1)]))


@register("layers/fft_conv", aliases=["fft-conv"])
class FFTConv(SequenceMixer):
    r"""Long depthwise causal convolution with free filter taps.

    .. math:: y_t = \sum_{s=0}^{t} h_{t-s} \odot x_s + D \odot x_t

    The filters have max_length taps: each position depends on at most max_length inputs. The state
    holds these inputs, because a general convolution has no smaller one; `step` computes an online
    convolution, O(log^2 n) per channel for n taps.

    Subclasses override `kernel` to parametrize the filters.

    Args:
        features: Number of channels.
        max_length: Number of taps. Default: 1280.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> create("layers/fft_conv", features=4, max_length=16)(ops.ones((2, 5, 4))).shape
        (2, 5, 4)

    Reference: Fu et al., "Simple Hardware-Efficient Long Convolutions for Sequence Modeling", 2023.
    """

    def __init__(self, features: Size, max_length: Size = 1280) -> None:
        self.features = features
        self.max_length = max_length
        window = ops.exp(ops.linspace(0.0, math.log(0.01), max_length))
        taps = Normal(0.0, max_length**-0.5)((features, max_length))
        self.weight = Parameter(taps * window)
        self.skip = Parameter(Normal(0.0, 1.0)((features,)), decay=False)

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example: the last inputs."""
        return self.features * (self.max_length - 1)

    def kernel(self, length: int) -> Tensor:
        """Return the first taps of the filters, (features, at most length)."""
        return self.weight[:, :length]

    def mix(
        self, x: Tensor, mask: Tensor | None, state: ConvState | None
    ) -> tuple[Tensor, ConvState | None]:
        """Convolve the sequence."""
        channels = ops.swapaxes(mask_padding(x, mask), 1, 2)
        if state is None:
            y = long_conv(channels, self.kernel(x.shape[1]), self.skip)
        else:
            taps = self._taps(state, state.inputs + x.shape[1])
            y, state = state.extend(channels, taps, mask)
        return ops.swapaxes(y, 1, 2), state

    def _taps(self, state: ConvState, length: int) -> Tensor:
        """Return the first taps with the skip connection: those of the state in inference."""
        if isinstance(state.kernel, Tensor) and not self.training:
            return state.kernel
        return with_skip(self.kernel(min(length, self.max_length)), self.skip)

    def initial_state(self, batch: int) -> ConvState:
        """Return the state of the convolution before the first position."""
        return ConvState.start(batch, self.features, self.skip)

    def step(self, x: Tensor, state: ConvState) -> tuple[Tensor, ConvState]:
        """Return the output at one position and the next state."""
        self.check_step(x, state)
        return state.step(x, self._taps(state, self.max_length))
