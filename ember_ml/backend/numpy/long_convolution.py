"""Long causal convolutions of single channels: products with Toeplitz matrices, or FFTs.

The memory layout is (channels, batch, time): a channel is a matrix without a copy.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

_DIRECT = 256


class Products:
    """Convolution with a Toeplitz matrix per channel.

    Args:
        kernel: Filters, (channels, taps).
        length: Number of positions, at least the number of taps.
    """

    def __init__(self, kernel: np.ndarray, length: int) -> None:
        self.length, self.taps = length, kernel.shape[1]
        wide, diagonals = self._matrices(len(kernel), kernel.dtype)
        diagonals[...] = kernel[:, None]
        self.matrices = wide[..., :length]

    def _matrices(self, channels: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return zeros (channels, length, 2 length - 1), and a view with diagonals as columns.

        The flat element s * 2 length + d is at row s and column s + d; columns from `length` on
        are padding.
        """
        wide = np.zeros((channels, self.length, 2 * self.length - 1), dtype)
        steps = [n * wide.itemsize for n in (self.length * (2 * self.length - 1), 2 * self.length, 1)]
        return wide, as_strided(wide, (channels, self.length, self.taps), steps)

    def convolve(self, x: np.ndarray) -> np.ndarray:
        """Convolve (channels, batch, time)."""
        return np.matmul(x, self.matrices)

    def pull(self, x: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients of x and of the filters."""
        wide, diagonals = self._matrices(len(x), x.dtype)
        wide[..., : self.length] = np.matmul(x.mT, g)
        return np.matmul(g, self.matrices.mT), diagonals.sum(1)


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
    """Return the faster convolution for `batch` sequences."""
    is_direct = length <= _DIRECT and 2 * batch >= length
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
