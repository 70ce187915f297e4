"""Reading and writing of audio files through soundfile."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.files import open_regular, write_atomically
from ember_ml._core.requirements import import_optional
from ember_ml.data.audio.resampling import resample
from ember_ml.data.audio.samples import check_rate, check_samples, first_nonfinite
from ember_ml.data.errors import DataFileError
from ember_ml.data.files import PathLike

BLOCK = 1 << 20
"""Number of frames that are read at once, so that no header decides how much memory is used."""
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)
"""Sizes in the headers of files that were written to a pipe: the data goes on to the end."""


class Audio(NamedTuple):
    """Samples and their sample rate."""

    samples: np.ndarray
    """float32, (samples,) if mono, (channels, samples) otherwise."""
    sample_rate: int
    """Number of samples per second."""


class AudioInfo(NamedTuple):
    """Properties of an audio file."""

    sample_rate: int
    """Number of samples per second."""
    channels: int
    """Number of channels."""
    frames: int
    """Number of samples of each channel."""
    format: str
    """Container, such as "WAV" or "FLAC"."""
    subtype: str
    """Encoding of the samples, such as "PCM_16"."""

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return self.frames / self.sample_rate


def info(path: PathLike) -> AudioInfo:
    """Return the properties of an audio file without decoding it.

    Args:
        path: File in any format of libsndfile: WAV, FLAC, OGG, MP3, AIFF, AU, ...

    Raises:
        DataFileError: If the file is missing, empty, truncated or not audio.
    """
    with opened(path) as sound:
        return AudioInfo(
            sound.samplerate, sound.channels, sound.frames, sound.format, sound.subtype
        )


def read(
    path: PathLike,
    sample_rate: int | None = None,
    *,
    mono: bool = True,
    start: float = 0.0,
    duration: float | None = None,
) -> Audio:
    """Return the samples of an audio file, and their sample rate.

    Args:
        path: File in any format of libsndfile: WAV, FLAC, OGG, MP3, AIFF, AU, ...
        sample_rate: Rate in Hz to resample to. Default: that of the file.
        mono: Whether to average the channels. Default: True.
        start: Time in seconds of the first sample to read. Default: 0.
        duration: Length in seconds to read; less if the file ends before. Default: to the end.

    Returns:
        `(samples, sample_rate)`: float32 of shape (samples,) if `mono`, else (channels, samples).

    Raises:
        DataFileError: If the file is missing, empty, truncated, not audio, or has no samples from
            `start` on, or if samples are NaN or infinite.

    Example:
        >>> import tempfile
        >>> from ember_ml.data import audio
        >>> folder = tempfile.TemporaryDirectory()
        >>> audio.write(f"{folder.name}/ramp.wav", [0.0, 0.25, 0.5, 0.75], 8000)
        >>> samples, sample_rate = audio.read(f"{folder.name}/ramp.wav")
        >>> samples.tolist(), sample_rate
        ([0.0, 0.25, 0.5, 0.75], 8000)
        >>> folder.cleanup()
    """
    if sample_rate is not None:
        sample_rate = check_rate("audio.read", "sample_rate", sample_rate)
    start = _seconds("start", start)
    length = None if duration is None else _seconds("duration", duration)
    with opened(path) as sound:
        first = round(start * sound.samplerate)
        count = sound.frames - first
        if length is not None:
            count = min(count, round(length * sound.samplerate))
        _check_count(path, sound, first, count)
        if first:  # some decoders lose their state in a seek, even to the start
            sound.seek(first)
        parts = list(decoded(path, sound, count, mono))
        samples = np.ascontiguousarray(np.concatenate(parts, axis=-1))
        rate = int(sound.samplerate)
    if sample_rate is None or sample_rate == rate:
        return Audio(samples, rate)
    return Audio(resample(samples, rate, sample_rate), sample_rate)


def write(path: PathLike, samples: object, sample_rate: int, *, subtype: str | None = None) -> None:
    """Write samples to an audio file atomically: on an error, the old file stays as it is.

    Args:
        path: File; its suffix selects the format (.wav, .flac, .ogg, ...). Missing parent folders
            are created.
        samples: Array or tensor of shape (samples,) or (channels, samples): floating-point numbers
            in [-1, 1], or signed integers.
        sample_rate: Number of samples per second.
        subtype: Encoding of the samples, such as "PCM_16", "PCM_24" or "FLOAT" (32-bit floating
            point, which also stores values outside [-1, 1]). Default: that of the format,
            "PCM_16" for .wav and .flac.

    Raises:
        ArgumentError: If samples are NaN, infinite or would be clipped, or if the format is
            unknown.
    """
    soundfile = import_optional("soundfile", "audio.write")
    array = check_samples("audio.write", samples)
    rate = check_rate("audio.write", "sample_rate", sample_rate)
    kind = Path(path).suffix[1:].upper()
    kind = {"AIF": "AIFF", "OPUS": "OGG"}.get(kind, kind)
    if kind not in soundfile.available_formats() or kind == "RAW":
        raise ArgumentError(
            f"audio.write: {os.fspath(path)!r} must end in .wav, .flac, .ogg or another suffix of "
            "libsndfile"
        )
    if subtype is None:
        subtype = "OPUS" if Path(path).suffix == ".opus" else soundfile.default_subtype(kind)
    _check_values(path, array, subtype)
    content = io.BytesIO()
    try:
        soundfile.write(content, array.T, rate, subtype=subtype, format=kind)
    except (soundfile.SoundFileError, ValueError) as error:
        raise ArgumentError(
            f"audio.write: {os.fspath(path)!r} cannot be written as {subtype} at {rate} Hz with "
            f"shape {array.shape}: {error}"
        ) from None
    write_atomically(path, content.getvalue())


def _check_values(path: PathLike, samples: np.ndarray, subtype: str) -> None:
    if not samples.size:
        raise ArgumentError(f"audio.write: there are no samples to write to {os.fspath(path)!r}")
    position = first_nonfinite(samples)
    if position is not None:
        raise ArgumentError(
            f"audio.write: sample {position} for {os.fspath(path)!r} is NaN or infinite"
        )
    peak = float(np.abs(samples).max())
    if peak > 1.0 and subtype not in ("FLOAT", "DOUBLE"):
        raise ArgumentError(
            f"audio.write: the samples for {os.fspath(path)!r} reach {peak:.4g} and would be "
            f"clipped to [-1, 1] by {subtype}; scale them, or use subtype='FLOAT'"
        )


@contextlib.contextmanager
def opened(path: PathLike) -> Iterator[Any]:
    """Open an audio file as a `soundfile.SoundFile`; every failure is a `DataFileError`.

    Args:
        path: File to read.
    """
    soundfile = import_optional("soundfile", "data.audio")
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
        if not size:
            raise DataFileError(f"{os.fspath(path)}: the file is empty (0 bytes)")
        if Path(path).suffix.lower() == ".raw":
            raise DataFileError(f"{os.fspath(path)}: a .raw file has no header to read it by")
        with soundfile.SoundFile(os.fspath(path)) as sound:
            _check_complete(path, sound.extra_info)
            yield sound
    except DataFileError:
        raise
    except OSError as error:
        raise DataFileError(f"{os.fspath(path)}: {error.strerror or error}") from None
    except soundfile.SoundFileError as error:
        reason = str(error).rpartition(": ")[2].rstrip(".")
        raise DataFileError(f"{os.fspath(path)}: not a readable audio file ({reason})") from None


def decoded(
    path: PathLike, sound: Any, count: int, mono: bool, block: int = BLOCK
) -> Iterator[np.ndarray]:
    """Yield the next frames of an open file in blocks, as (samples,) or (channels, samples).

    Args:
        path: Path of the file, for errors.
        sound: Open `soundfile.SoundFile`.
        count: Number of frames to read.
        mono: Whether to average the channels.
        block: Largest number of frames of a block.
    """
    left = count
    while left:
        part = sound.read(min(left, block), dtype="float32", always_2d=True).T
        if not part.shape[-1]:
            raise DataFileError(
                f"{os.fspath(path)}: truncated: the header declares {sound.frames} frames, but "
                f"reading ended {left} frames before the end"
            )
        position = first_nonfinite(part)
        if position is not None:
            position += sound.tell() - part.shape[-1]
            raise DataFileError(f"{os.fspath(path)}: sample {position} is NaN or infinite")
        left -= part.shape[-1]
        yield (part[0] if len(part) == 1 else part.mean(axis=0)) if mono else part


def _check_complete(path: PathLike, log: str) -> None:
    """Raise if libsndfile found less data than the header declares, which it only logs."""
    for declared, present in re.findall(r": (\d+) \(should be (\d+)\)", log):
        size = int(declared)
        if size > int(present) + 1 and size not in _UNKNOWN_SIZES:  # + 1: a padding byte
            raise DataFileError(
                f"{os.fspath(path)}: truncated: the header declares {declared} bytes, but only "
                f"{present} are present"
            )


def _check_count(path: PathLike, sound: Any, first: int, count: int) -> None:
    if count > 0:
        return
    if not sound.frames:
        raise DataFileError(f"{os.fspath(path)}: contains no samples")
    if first >= sound.frames:
        raise DataFileError(
            f"{os.fspath(path)}: start={first / sound.samplerate:g} s is not before the end at "
            f"{sound.frames / sound.samplerate:g} s"
        )
    raise ArgumentError(f"audio.read: duration is less than a sample at {sound.samplerate} Hz")


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ArgumentTypeError(f"audio.read: {name} must be a time in seconds, not {value!r:.60}")
    seconds = float(value)
    if not 0 <= seconds < float("inf"):
        raise ArgumentError(f"audio.read: {name} must be a time of at least 0 s, not {value!r}")
    return seconds
