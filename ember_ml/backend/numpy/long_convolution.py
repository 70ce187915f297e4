"""Long causal convolutions of single channels, by a C kernel or FFTs.

The memory layout is (channels, batch, time). The C kernels must be available.
"""

from __future__ import annotations

from typing import TypeAlias, cast

import numpy as np

from ember_ml._native.frame import Frame
from ember_ml.backend import native_long_convolution as native
from ember_ml.backend.fft_lengths import fast_fft_length
from ember_ml.backend.numpy.native import frame

_DIRECT = native.MOST_LENGTH  # the C kernel is faster than NumPy's FFT up to there


class Filters:
    """Convolution by the C kernel.

    Args:
        kernel: Filters, (channels, at most `length` taps).
    """

    def __init__(self, kernel: np.ndarray) -> None:
        self.kernel = kernel

    def convolve(self, x: np.ndarray) -> np.ndarray:
        """Convolve (channels, batch, time)."""
        return np.asarray(native.convolve(self._access(x), x, self.kernel))

    def pull(self, x: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients of x and of the filters."""
        return native.pull(self._access(x), x, g, self.kernel)

    def _access(self, x: np.ndarray) -> Frame:
        return cast("Frame", frame(x, self.kernel))  # `is_served` has accepted them


class Transforms:
    """Convolution by FFT, with the same members."""

    def __init__(self, kernel: np.ndarray, length: int) -> None:
        self.length, self.taps = length, kernel.shape[1]
        self.size = fast_fft_length(length + self.taps - 1)
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


Method: TypeAlias = Filters | Transforms


def is_direct(length: int) -> bool:
    """Return whether the C kernel is faster than FFTs for sequences of a length."""
    return length <= _DIRECT


def method(kernel: np.ndarray, length: int) -> Method:
    """Return the faster convolution for sequences of a length."""
    kernel = kernel[:, :length]
    return Filters(kernel) if is_direct(length) else Transforms(kernel, length)
