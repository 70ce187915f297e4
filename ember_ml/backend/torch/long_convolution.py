"""Long causal convolutions of single channels, a few channels at a time.

The memory layout is (channels, batch, time): a block of channels fits a cache and is a batch of
matrices without a copy.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import torch
from torch.nn import functional as F

from ember_ml._core.errors import ShapeError
from ember_ml.backend import native_long_convolution as native
from ember_ml.backend.fft_lengths import fast_fft_length
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.fusion import fused, fusible
from ember_ml.backend.torch.native import accepted_frame
from ember_ml.backend.torch.ops._kernel_calls import is_autocast, is_served, with_adjoint
from ember_ml.backend.torch.ops.fft import irfft, rfft

BLOCK = 1 << 18  # elements of a block that fit a cache
_LARGE = 1 << 21  # number of elements from which blocks are faster
DIRECT = 256
SHORT = 512  # positions up to which a C kernel is faster than FFTs


class Products:
    """Convolution with a Toeplitz matrix per channel."""

    def __init__(self, channels: int, length: int, taps: int, like: torch.Tensor) -> None:
        self.length, self.taps = length, taps
        # The flat element s * 2 length + d is at row s and column s + d; columns from `length` on
        # are padding. The diagonals of a matrix are the columns of this view.
        shape, steps = (channels, length, taps), (length * (2 * length - 1), 2 * length, 1)
        wide, self.products = like.new_zeros(2, channels, length, 2 * length - 1)
        self.matrices = wide[..., :length]
        self.diagonals, self.sums = (
            wide.as_strided(shape, steps),
            self.products.as_strided(shape, steps),
        )

    def load(self, kernel: torch.Tensor) -> None:
        """Set the filters, (channels, at least taps)."""
        self.diagonals.copy_(kernel[:, None, : self.taps])

    def convolve(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve (channels, batch, time)."""
        return torch.bmm(x, self.matrices)

    def pull(self, x: torch.Tensor, g: torch.Tensor) -> tuple[Any, Any]:
        """Return the gradients of x and of the filters."""
        self.products[..., : self.length] = torch.bmm(x.mT, g)
        return torch.bmm(g, self.matrices.mT), self.sums.sum(1)


class Transforms:
    """Convolution by FFT."""

    def __init__(self, channels: int, length: int, taps: int, like: torch.Tensor) -> None:
        self.length, self.taps = length, taps
        self.size = fast_fft_length(length + taps - 1)

    def load(self, kernel: torch.Tensor) -> None:
        """Set the filters, (channels, at least taps)."""
        self.spectrum = torch.fft.rfft(kernel[:, None, : self.taps], self.size)

    def convolve(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve (channels, batch, time)."""
        z = torch.fft.rfft(x, self.size).mul_(self.spectrum)
        return torch.fft.irfft(z, self.size)[..., : self.length]

    def pull(self, x: torch.Tensor, g: torch.Tensor) -> tuple[Any, Any]:
        """Return the gradients of x and of the filters."""
        z = torch.fft.rfft(g, self.size)
        products = torch.fft.rfft(x, self.size).conj_physical_().mul_(z).sum(1)
        into = torch.fft.irfft(z.mul_(self.spectrum.conj_physical()), self.size)
        taps = torch.fft.irfft(products, self.size)
        return into[..., : self.length], taps[..., : self.taps]


Method: TypeAlias = Products | Transforms


def method(channels: int, x: torch.Tensor, kernel: torch.Tensor) -> Method:
    """Return the faster convolution for blocks of channels of x (batch, channels, time)."""
    batch, _, length = x.shape
    kind = Products if is_direct(batch, length) else Transforms
    return kind(channels, length, min(length, kernel.shape[1]), x)


def is_direct(batch: int, length: int) -> bool:
    """Return whether matrix products are faster than FFTs."""
    return length <= DIRECT and 2 * batch >= length


def block_size(x: torch.Tensor, *channels: int) -> int:
    """Return the number of channels that fit the cache and divide all these numbers."""
    common = math.gcd(*channels)
    most = min(common, max(1, BLOCK // (x.shape[0] * x.shape[2])))
    return max(size for size in range(1, most + 1) if common % size == 0)


def long_conv(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """Implement `ember_ml.ops.long_conv`."""
    if x.ndim != 3 or kernel.ndim != 2 or len(kernel) != x.shape[1] or 0 in kernel.shape:
        raise ShapeError(
            f"long_conv takes x (batch, channels, length) and kernel (channels, taps), "
            f"not shapes {(*x.shape,)} and {(*kernel.shape,)}"
        )
    if kernels.serves(x, kernel) and kernels.long_conv.takes(x, kernel):
        return kernels.long_conv.apply(plain, x, kernel)
    if is_autocast(x):
        return plain(x, kernel)
    if _is_served(x, kernel):
        return with_adjoint(_by_kernel, _pull_by_kernel, plain, x, kernel)
    if x.numel() >= _LARGE and fusible(x, kernel):
        return fused(_run, _pull, plain, x, kernel)
    return plain(x, kernel)


def plain(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """Compute `long_conv` without blocks."""
    batch, _, length = x.shape
    kernel = kernel[:, :length]
    if is_direct(batch, length):
        return (x.transpose(0, 1) @ toeplitz(kernel, length)).transpose(0, 1)
    size = fast_fft_length(length + kernel.shape[1] - 1)
    y = irfft(rfft(x, size) * rfft(kernel, size), size)
    return y[..., :length].to(x.dtype)


def toeplitz(kernel: torch.Tensor, length: int) -> torch.Tensor:
    """Return the Toeplitz matrices (channels, source, target) of filters (channels, taps)."""
    row = torch.constant_pad_nd(kernel, (0, 2 * length - kernel.shape[1])).unsqueeze(1)
    flat = row.expand(-1, length, -1).flatten(1)[:, : length * (2 * length - 1)]
    return flat.unflatten(1, (length, -1))[..., :length]


def _is_served(x: torch.Tensor, kernel: torch.Tensor) -> bool:
    return is_served(x, kernel) and x.shape[2] <= SHORT


def _by_kernel(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    return native.convolve(accepted_frame(x, kernel), x.transpose(0, 1), kernel).transpose(0, 1)


def _pull_by_kernel(
    g: torch.Tensor, x: torch.Tensor, kernel: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    access = accepted_frame(g, x, kernel)
    into, taps = native.pull(access, x.transpose(0, 1), g.transpose(0, 1), kernel)
    return into.transpose(0, 1), F.pad(taps, (0, kernel.shape[1] - taps.shape[1]))


def _run(x: torch.Tensor, kernel: torch.Tensor) -> tuple[Any, None]:
    size = block_size(x, x.shape[1])
    way, x = method(size, x, kernel), x.transpose(0, 1)
    out = torch.empty_like(x)
    for x_, h, y in zip(*[part.split(size) for part in (x, kernel, out)], strict=True):
        way.load(h)
        y.copy_(way.convolve(x_))
    return out.transpose(0, 1), None


def _pull(operands: Any, saved: Any, g: torch.Tensor) -> list[Any]:
    x, kernel = operands
    size = block_size(x, x.shape[1])
    way, x, g = method(size, x, kernel), x.transpose(0, 1), g.transpose(0, 1)
    into, taps = torch.empty_like(x), torch.zeros_like(kernel)
    parts = x, kernel, g, into, taps
    for x_, h, g_, into_, taps_ in zip(*[part.split(size) for part in parts], strict=True):
        way.load(h)
        grad_x, of_taps = way.pull(x_, g_)
        into_.copy_(grad_x)
        taps_[:, : way.taps] = of_taps
    return [into.transpose(0, 1), taps]
