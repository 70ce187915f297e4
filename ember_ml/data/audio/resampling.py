"""Resampling through soxr, of whole signals and of streams."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from ember_ml._core.errors import ArgumentError
from ember_ml._core.requirements import import_optional
from ember_ml.data.audio.samples import check_rate, check_samples
from ember_ml.data.errors import check_integer

Quality: TypeAlias = Literal["QQ", "LQ", "MQ", "HQ", "VHQ"]


class Resampler:
    """Streaming resampler: the concatenated results equal `resample` of the whole signal.

    The filter delays its output. `flush` returns the rest, so that nothing is lost or shifted.

    Args:
        source_rate: Sample rate of the input in Hz.
        target_rate: Sample rate of the output in Hz.
        channels: Number of channels. Chunks are (samples,), or (channels, samples) if there are
            several channels. Default: 1.
        quality: soxr's "QQ", "LQ", "MQ", "HQ" or "VHQ". Default: "HQ".

    Example:
        >>> from ember_ml.data import audio
        >>> resampler = audio.Resampler(16000, 8000)
        >>> chunks = [resampler.process([0.5] * 1000) for _ in range(4)]
        >>> sum(len(chunk) for chunk in chunks) + len(resampler.flush())
        2000
    """

    def __init__(
        self,
        source_rate: int,
        target_rate: int,
        channels: int = 1,
        quality: Quality = "HQ",
    ) -> None:
        self.source_rate = check_rate("Resampler", "source_rate", source_rate)
        self.target_rate = check_rate("Resampler", "target_rate", target_rate)
        self.channels = check_integer("Resampler", "channels", channels, 1)
        _check_quality("Resampler", quality)
        self._stream = import_optional("soxr", "audio.Resampler").ResampleStream(
            self.source_rate, self.target_rate, self.channels, dtype="float32", quality=quality
        )

    def process(self, chunk: object) -> np.ndarray:
        """Return the output that is complete after the next samples; it may be empty.

        Args:
            chunk: Array or tensor with any number of samples: (samples,) or (channels, samples).
        """
        return self._run(check_samples("Resampler.process", chunk), last=False)

    def flush(self) -> np.ndarray:
        """Return the rest of the output, and start a new signal."""
        shape = (0,) if self.channels == 1 else (self.channels, 0)
        rest = self._run(np.empty(shape, np.float32), last=True)
        self._stream.clear()
        return rest

    def _run(self, chunk: np.ndarray, last: bool) -> np.ndarray:
        channels = 1 if chunk.ndim == 1 else len(chunk)
        if channels != self.channels:
            raise ArgumentError(
                f"Resampler: the chunk has {channels} channels, the resampler {self.channels}"
            )
        if self.source_rate == self.target_rate:
            return chunk.astype(np.float32)
        rows = np.ascontiguousarray(chunk.T, dtype=np.float32)
        return np.ascontiguousarray(self._stream.resample_chunk(rows, last=last).T)


def resample(
    samples: object, source_rate: int, target_rate: int, *, quality: Quality = "HQ"
) -> np.ndarray:
    """Return the signal at another sample rate.

    It has n * target_rate / source_rate samples, rounded. The values are those of
    `librosa.resample`, which rounds the length up.

    Args:
        samples: Array or tensor of shape (samples,) or (channels, samples).
        source_rate: Sample rate of the samples in Hz.
        target_rate: Sample rate of the result in Hz.
        quality: soxr's "QQ", "LQ", "MQ", "HQ" or "VHQ". Default: "HQ".

    Example:
        >>> from ember_ml.data import audio
        >>> audio.resample([0.5] * 441, 44100, 16000).shape
        (160,)
    """
    source = check_rate("audio.resample", "source_rate", source_rate)
    target = check_rate("audio.resample", "target_rate", target_rate)
    _check_quality("audio.resample", quality)
    array = check_samples("audio.resample", samples)
    if source == target or not array.size:
        return array.copy()
    soxr = import_optional("soxr", "audio.resample")
    rows = np.ascontiguousarray(array.T)
    return np.ascontiguousarray(soxr.resample(rows, source, target, quality=quality).T)


def _check_quality(where: str, quality: Quality) -> None:
    if quality not in get_args(Quality):
        raise ArgumentError(f"{where}: quality must be QQ, LQ, MQ, HQ or VHQ, not {quality!r}")
