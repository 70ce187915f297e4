"""Long causal convolutions of single channels: products with Toeplitz matrices, or FFTs.

The memory layout is (channels, batch, time): a channel is a matrix without a copy. Products are
computed for a few channels at a time, whose matrices fit a cache. The C kernels must be available.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for

_TOEPLITZ, _DIAGONALS = Kernel("toeplitz", "ppiiiii"), Kernel("diagonal_sums", "ppiiiii")
_BLOCK = 1 << 18  # elements of matrices that fit a cache
_DIRECT = 1024


class Products:
    """Convolution with a Toeplitz matrix per channel.

    Args:
        kernel: Filters, (channels, at most `length` taps).
        length: Number of positions.
    """

    def __init__(self, kernel: np.ndarray, length: int) -> None:
        self.kernel, self.length = np.ascontiguousarray(kernel), length
        self.size = min(len(kernel), max(1, _BLOCK // (length * length)))
        self.matrices = np.empty((self.size, length, length), kernel.dtype)

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Iterate over blocks of channels, and memory for their matrices."""
        for start in range(0, len(self.kernel), self.size):
            here = slice(start, min(start + self.size, len(self.kernel)))
            yield here, self.matrices[: here.stop - here.start]

    def _call(self, kernel: Kernel, first: np.ndarray, second: np.ndarray, channels: int) -> None:
        taps, threads = self.kernel.shape[1], threads_for(self.matrices.size)
        suffix, length = SUFFIXES[self.kernel.dtype.char], self.length
        kernel(suffix, pointer(first), pointer(second), channels, length, taps, taps, threads)

    def convolve(self, x: np.ndarray) -> np.ndarray:
        """Convolve (channels, batch, time)."""
        out = np.empty(x.shape, x.dtype)
        for here, matrices in self._blocks():
            self._call(_TOEPLITZ, self.kernel[here], matrices, len(matrices))
            np.matmul(x[here], matrices, out=out[here])
        return out

    def pull(self, x: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients of x and of the filters."""
        into, taps = np.empty(x.shape, x.dtype), np.empty_like(self.kernel)
        for here, matrices in self._blocks():
            self._call(_TOEPLITZ, self.kernel[here], matrices, len(matrices))
            np.matmul(g[here], matrices.mT, out=into[here])
            np.matmul(x[here].mT, g[here], out=matrices)
            self._call(_DIAGONALS, matrices, taps[here], len(matrices))
        return into, taps


class Transforms:
    """Convolution by FFT, with the same members."""

    def __init__(self, kernel: np.ndarray, length: int) -> None:
        self.length, self.taps = length, kernel.shape[1]
        self.size = fast_length(length + self.taps - 1)
        self.spectrum = np.fft.rfft(kernel[:, None], self.size)

    def convolve(self, x: np.ndarray) -> np.ndarray:
        """Convolve (channels, batch, time)."""
        spectrum = np.fft.rfft(x, self.size)
        spectrum *= self.spectrum
        return np.fft.irfft(spectrum, self.size)[..., : self.length]

    def pull(self, x: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients of x and of the filters."""
        spectrum = np.fft.rfft(g, self.size)
        sums = np.fft.irfft((np.fft.rfft(x, self.size).conj() * spectrum).sum(1), self.size)
        spectrum *= self.spectrum.conj()
        into = np.fft.irfft(spectrum, self.size)[..., : self.length]
        return into, sums[..., : self.taps]


Method: TypeAlias = Products | Transforms


def method(kernel: np.ndarray, batch: int, length: int) -> Method:
    """Return the faster convolution for `batch` sequences: NumPy's FFT costs 30 products."""
    is_direct = length <= _DIRECT and 8 * batch >= length
    return (Products if is_direct else Transforms)(kernel[:, :length], length)


def fast_length(length: int) -> int:
    """Return the smallest even number >= `length` without a prime factor above 5."""
    size = length + length % 2
    while _without(_without(_without(size, 2), 3), 5) > 1:
        size += 2
    return size


def _without(number: int, prime: int) -> int:
    while number % prime == 0:
        number //= prime
    return number
