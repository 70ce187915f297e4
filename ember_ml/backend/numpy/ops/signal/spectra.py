"""Power spectra, computed in blocks of frames that fit into the cache."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ember_ml._core.errors import ArgumentError
from ember_ml.backend.numpy.ops.signal.convolution import widen

BLOCK = 1 << 17
"""Number of elements of windowed frames that are transformed at once."""


def power_spectra(x, window, hop_length, fft_length=None):
    size = window.size if fft_length is None else fft_length
    if window.ndim != 1 or size < window.size or hop_length < 1:
        raise ArgumentError("power_spectra: invalid arguments")  # the op's body explains it
    taper = widen(window)
    frames = sliding_window_view(widen(x), window.size, axis=-1)[..., ::hop_length, :]
    y = np.empty((*frames.shape[:-1], size // 2 + 1), taper.dtype)
    rows = max(BLOCK // (max(int(np.prod(frames.shape[:-2])), 1) * size), 1)
    for start in range(0, frames.shape[-2], rows):
        spectrum = np.fft.rfft(frames[..., start : start + rows, :] * taper, size)
        block = y[..., start : start + rows, :]
        np.square(spectrum.real, out=block)
        block += np.square(spectrum.imag)
    return y.astype(x.dtype, copy=False)
