"""Mel scales and triangular filters."""

from __future__ import annotations

import math
from collections.abc import Callable

from ember_ml import ops
from ember_ml._core.tensor import Tensor

SLANEY_STEP = 200.0 / 3.0
"""Width in Hz of a mel of the Slaney scale below 1000 Hz."""
SLANEY_KNEE = 1000.0
"""Frequency in Hz above which the Slaney scale is logarithmic."""
SLANEY_LOG = math.log(6.4) / 27.0
"""Logarithm of the ratio of frequencies one mel apart, above the knee."""


def slaney_mel(frequency: float) -> float:
    """Return the mel of a frequency on the Slaney scale: linear below 1 kHz, then logarithmic.

    Args:
        frequency: Frequency in Hz.
    """
    if frequency < SLANEY_KNEE:
        return frequency / SLANEY_STEP
    return SLANEY_KNEE / SLANEY_STEP + math.log(frequency / SLANEY_KNEE) / SLANEY_LOG


def slaney_frequency(mel: float) -> float:
    """Return the frequency in Hz of a mel on the Slaney scale.

    Args:
        mel: Position on the scale.
    """
    knee = SLANEY_KNEE / SLANEY_STEP
    if mel < knee:
        return mel * SLANEY_STEP
    return SLANEY_KNEE * math.exp(SLANEY_LOG * (mel - knee))


def htk_mel(frequency: float) -> float:
    """Return the mel of a frequency on the HTK scale: 2595 log10(1 + f / 700).

    Args:
        frequency: Frequency in Hz.
    """
    return 2595.0 * math.log10(1.0 + frequency / 700.0)


def htk_frequency(mel: float) -> float:
    """Return the frequency in Hz of a mel on the HTK scale.

    Args:
        mel: Position on the scale.
    """
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


Scale = tuple[Callable[[float], float], Callable[[float], float]]
SLANEY: Scale = (slaney_mel, slaney_frequency)
HTK: Scale = (htk_mel, htk_frequency)


def corners(scale: Scale, n_mels: int, f_min: float, f_max: float) -> list[float]:
    """Return n_mels + 2 frequencies, equally spaced on a mel scale.

    Args:
        scale: `SLANEY` or `HTK`.
        n_mels: Number of filters.
        f_min: Lowest frequency in Hz.
        f_max: Highest frequency in Hz.
    """
    to_mel, to_frequency = scale
    low, high = to_mel(f_min), to_mel(f_max)
    step = (high - low) / (n_mels + 1)
    return [to_frequency(low + at * step) for at in range(n_mels + 2)]


def weights(
    frequencies: list[float], n_fft: int, sample_rate: float, area: bool
) -> dict[tuple[int, int], float]:
    """Return the weights of triangular filters that are not 0, by (frequency bin, filter).

    Args:
        frequencies: Corners of the triangles; filter m rises from m to m + 1 and falls to m + 2.
        n_fft: Length of the Fourier transform.
        sample_rate: Number of samples per second.
        area: Whether each triangle has area 1 (Slaney) instead of height 1.
    """
    bins, bin_width = n_fft // 2 + 1, sample_rate / n_fft
    entries = {}
    for number in range(len(frequencies) - 2):
        low, center, high = frequencies[number : number + 3]
        height = 2.0 / (high - low) if area else 1.0
        for at in range(math.ceil(low / bin_width), bins):
            rise = (at * bin_width - low) / (center - low)
            fall = (high - at * bin_width) / (high - center)
            if fall <= 0:
                break
            entries[at, number] = height * max(min(rise, fall), 0.0)
    return entries


def filters(frequencies: list[float], n_fft: int, sample_rate: float, area: bool) -> Tensor:
    """Return triangular filters as a matrix, (n_fft // 2 + 1, filters).

    Args:
        frequencies: Corners of the triangles; filter m rises from m to m + 1 and falls to m + 2.
        n_fft: Length of the Fourier transform.
        sample_rate: Number of samples per second.
        area: Whether each triangle has area 1 (Slaney) instead of height 1.
    """
    count = len(frequencies) - 2
    entries = weights(frequencies, n_fft, sample_rate, area)
    matrix = ops.zeros((n_fft // 2 + 1) * count)
    if entries:
        at = ops.array([row * count + column for row, column in entries])
        matrix = ops.index_update(matrix, at, ops.array(list(entries.values())))
    return ops.reshape(matrix, (n_fft // 2 + 1, count))
