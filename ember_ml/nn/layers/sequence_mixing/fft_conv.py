"""Long causal convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Size
from ember_ml.nn.initializers import Normal
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, zeros_beside
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register

Kernel: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(batch, channels, time) and filters of (channels, taps) -> (batch, channels, time)."""

KERNELS: dict[str, Kernel] = {}
"""Fused kernels by the device's kind ("cuda"), which go before `ops.fft_conv` there."""


def fft_conv(x: Tensor, kernel: Tensor, skip: Tensor | None = None) -> Tensor:
    r"""Each channel convolved with a filter as long as the sequence, without a look ahead.

    .. math:: y_t = \sum_{s=0}^{t} h_{t-s} x_s + D x_t

    By transforms of twice the length, n log n steps, with the FFT of the backend (cuFFT on CUDA),
    or by the kernel that `KERNELS` holds for the device.

    Args:
        x: (batch, channels, time).
        kernel: h, (channels, taps).
        skip: D, (channels,).

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
    """`fft_conv`, or for many short sequences what is quicker there."""
    if x.size == 0:
        return x
    fused = device_kernel(x)
    return (ops.long_conv if fused is None else fused)(x, with_skip(kernel, skip))


def device_kernel(x: Tensor) -> Kernel | None:
    """The kernel that `KERNELS` holds for the device of x."""
    return KERNELS.get(str(x.device).partition(":")[0]) if KERNELS else None


def with_skip(kernel: Tensor, skip: Tensor | None) -> Tensor:
    """The filters with what goes past them in their first tap."""
    if skip is None:
        return kernel
    first = ops.expand_dims(skip, 1)
    taps = kernel.shape[-1]
    return kernel + (first if taps == 1 else ops.pad_constant(first, [(0, 0), (0, taps - 1)]))


def empty_window(batch: int, channels: int, length: int, like: Tensor) -> Tensor:
    """The last inputs of a filter before the first one: zeros, (batch, length - 1, channels)."""
    return zeros_beside(like, (batch, length - 1, channels))


def push(x: Tensor, window: Tensor) -> Tensor:
    """The last inputs with the present one at the end, (batch, length, channels)."""
    return ops.concat([window, ops.expand_dims(x, 1)], axis=1)


@register("layers/fft_conv", aliases=["fft-conv"])
class FFTConv(SequenceMixer):
    r"""Each channel convolved with a long filter, all of whose taps are learned.

    .. math:: y_t = \sum_{s=0}^{t} h_{t-s} \odot x_s + D \odot x_t

    The filters have max_length taps: of a longer sequence, a position sees as many inputs. The
    form that goes step by step keeps these inputs, so that its memory does not grow beyond
    max_length; a convolution has none of constant size in general.

    Subclasses give `kernel` where the filters come of something else.

    Args:
        features: the number of channels.
        max_length: the number of taps.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> create("layers/fft_conv", features=4, max_length=16)(ops.ones((2, 5, 4))).shape
        (2, 5, 4)

    Reference: Fu et al., "Simple Hardware-Efficient Long Convolutions for Sequence Modeling", 2023.
    """

    def __init__(self, features: Size, max_length: Size = 1280) -> None:
        self.features = features
        self.max_length = max_length
        fading = ops.exp(ops.linspace(0.0, math.log(0.01), max_length))
        taps = Normal(0.0, max_length**-0.5)((features, max_length))
        self.weight = Parameter(taps * fading)
        self.skip = Parameter(Normal(0.0, 1.0)((features,)), decay=False)

    @property
    def state_size(self) -> int:
        """The inputs that a later position still sees."""
        return self.features * (self.max_length - 1)

    def kernel(self, length: int) -> Tensor:
        """The first taps of the filters, (features, at most length)."""
        return self.weight[:, :length]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence convolved."""
        self.check_sequence(x, mask)
        if mask is not None:
            x = ops.where(ops.expand_dims(mask, -1), x, 0.0)
        if x.size == 0:
            return x
        channels = ops.swapaxes(x, 1, 2)
        return ops.swapaxes(long_conv(channels, self.kernel(x.shape[1]), self.skip), 1, 2)

    def initial_state(self, batch: int) -> Tensor:
        """No inputs yet: zeros."""
        return empty_window(batch, self.features, self.max_length, self.skip)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """The output of one position, and the last inputs."""
        seen = push(x, state)
        taps = ops.flip(with_skip(self.kernel(self.max_length), self.skip), axis=1)
        return ops.einsum("btc,ct->bc", seen, taps), seen[:, 1:]
