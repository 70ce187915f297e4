"""Logarithmic scales of power spectra."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike

AMIN = 1e-10
"""Smallest power; smaller ones are raised to it before the logarithm."""
WHISPER_RANGE = 8.0
"""Range of Whisper's features below their maximum, as a power of ten."""


def power_to_db(
    x: TensorLike,
    ref: float = 1.0,
    amin: float = AMIN,
    top_db: float | None = 80.0,
    axis: int | tuple[int, ...] | None = None,
) -> Tensor:
    """Return power in decibels: 10 log10(x / ref).

    With the defaults it equals `librosa.power_to_db`.

    Args:
        x: Power, such as a mel spectrogram.
        ref: Power of 0 dB. Default: 1.
        amin: Smallest power; smaller ones are raised to it. Default: 1e-10.
        top_db: Range in decibels below the maximum that is kept; smaller values are raised to its
            lower end. None keeps all. Default: 80.
        axis: Axes of the maximum, such as (-2, -1) for each spectrogram of a batch by itself.
            Default: all axes.

    Example:
        >>> nn.features.power_to_db([1.0, 0.1, 1e-20]).tolist()
        [0.0, -10.0, -80.0]
    """
    if not ref > 0 or not amin > 0:
        raise ArgumentError(f"power_to_db: ref ({ref}) and amin ({amin}) must be positive")
    if top_db is not None and not top_db >= 0:
        raise ArgumentError(f"power_to_db: top_db must be at least 0 or None, not {top_db}")
    decibels = _decibels(convert_to_tensor(x), ref, amin)
    if top_db is None:
        return decibels
    return ops.maximum(decibels, ops.max(decibels, axis=axis, keepdims=True) - top_db)


def db_to_power(x: TensorLike, ref: float = 1.0) -> Tensor:
    """Return decibels as power: ref 10^(x / 10).

    Args:
        x: Decibels.
        ref: Power of 0 dB. Default: 1.
    """
    return ops.multiply(ops.pow(10.0, ops.divide(x, 10.0)), ref)


def _decibels(x: Tensor, ref: float = 1.0, amin: float = AMIN) -> Tensor:
    decibels = ops.multiply(ops.log10(ops.maximum(x, amin)), 10.0)
    if ref == 1.0:
        return decibels
    return decibels - _decibels(ops.full_like(x[..., :1], ref), amin=amin)


def scaled(x: Tensor, scale: str, top_db: float | None, peak: Tensor | None) -> Tensor:
    """Return power on a scale of `MelSpectrogram`.

    Args:
        x: Power, (..., frames, features).
        scale: "power", "db", "log" or "whisper".
        top_db: Range of "db".
        peak: Largest power of the signal, which broadcasts to x; unused if `needs_peak` is false.
    """
    if scale == "power":
        return x
    if scale == "log":
        return ops.log(ops.maximum(x, AMIN))
    decibels = _decibels(x)
    if scale == "db":
        if peak is None or top_db is None:
            return decibels
        return ops.maximum(decibels, _decibels(peak) - top_db)
    if peak is None:
        raise ArgumentError("the scale 'whisper' needs the peak")
    bels, most = ops.divide(decibels, 10.0), ops.divide(_decibels(peak), 10.0)
    return ops.divide(ops.maximum(bels, most - WHISPER_RANGE) + 4.0, 4.0)


def needs_peak(scale: str, top_db: float | None) -> bool:
    """Return whether a scale depends on the largest power of the whole signal.

    Args:
        scale: "power", "db", "log" or "whisper".
        top_db: Range of "db".
    """
    return scale == "whisper" or (scale == "db" and top_db is not None)
