"""Streaming of audio files in blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from ember_ml._core.errors import ArgumentError
from ember_ml.data.audio.files import decoded, opened
from ember_ml.data.audio.length import fit_length
from ember_ml.data.audio.resampling import Resampler
from ember_ml.data.audio.samples import check_rate
from ember_ml.data.errors import DataFileError, check_integer
from ember_ml.data.files import PathLike

CHUNK = 1 << 14
"""Number of frames that are decoded at once."""


def stream(
    path: PathLike,
    frames: int,
    hop: int | None = None,
    *,
    sample_rate: int | None = None,
    mono: bool = True,
    pad: bool = False,
) -> Iterator[np.ndarray]:
    """Yield blocks of an audio file, in constant memory.

    Block k starts at sample k * hop. The last block is the first one that reaches the end of the
    file, and may be shorter. Without overlap, the concatenated blocks equal `read`.

    Args:
        path: Audio file.
        frames: Number of samples of a block.
        hop: Number of samples between the starts of two blocks, at most `frames`. Default:
            `frames`, without overlap.
        sample_rate: Rate in Hz to resample to; `frames` and `hop` count samples at this rate.
            Default: that of the file.
        mono: Whether to average the channels; else blocks are (channels, samples). Default: True.
        pad: Whether to pad the last block with zeros to `frames` samples. Default: False.

    Raises:
        DataFileError: As in `read`; for damage inside the file, when reading reaches it.
    """
    frames = check_integer("audio.stream", "frames", frames, 1)
    step = frames if hop is None else check_integer("audio.stream", "hop", hop, 1)
    if step > frames:
        raise ArgumentError(f"audio.stream: hop ({step}) must be at most frames ({frames})")
    rate = None if sample_rate is None else check_rate("audio.stream", "sample_rate", sample_rate)
    return _blocks(_chunks(path, rate, mono), frames, step, pad)


def _chunks(path: PathLike, rate: int | None, mono: bool) -> Iterator[np.ndarray]:
    """Yield the file in chunks of any size, resampled."""
    with opened(path) as sound:
        if not sound.frames:
            raise DataFileError(f"{os.fspath(path)}: contains no samples")
        source = decoded(path, sound, sound.frames, mono, block=CHUNK)
        if rate is None or rate == sound.samplerate:
            yield from source
            return
        yield from _resampled(source, sound, rate, 1 if mono else sound.channels)


def _resampled(
    chunks: Iterator[np.ndarray], sound: Any, rate: int, channels: int
) -> Iterator[np.ndarray]:
    resampler = Resampler(sound.samplerate, rate, channels)
    for chunk in chunks:
        yield resampler.process(chunk if channels > 1 else chunk.reshape(-1))
    yield resampler.flush()


def _blocks(chunks: Iterator[np.ndarray], frames: int, hop: int, pad: bool) -> Iterator[np.ndarray]:
    pending: list[np.ndarray] = []
    available = 0
    for chunk in chunks:
        pending.append(chunk)
        available += chunk.shape[-1]
        if available <= frames:  # the block that reaches the end is the last one
            continue
        buffer = np.concatenate(pending, axis=-1)
        starts = range(0, available - frames, hop)
        for start in starts:
            yield buffer[..., start : start + frames].copy()
        available -= len(starts) * hop
        pending = [buffer[..., len(starts) * hop :]]
    rest = np.concatenate(pending, axis=-1)
    yield fit_length(rest, frames) if pad else rest
