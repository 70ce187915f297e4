"""Audio files: read, write, info and blocks against soundfile and librosa; damaged files."""

from __future__ import annotations

import math
import os
import struct
import tracemalloc
from pathlib import Path

import librosa
import numpy as np
import pytest
import soundfile

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data import DataFileError, audio

from .signals import WITH_LIBROSA, noise, tone

pytestmark = WITH_LIBROSA

RATE = 16000


@pytest.fixture
def stereo(tmp_path: Path) -> Path:
    path = tmp_path / "stereo.wav"
    soundfile.write(path, noise(10_000, channels=2).T, 22050, subtype="FLOAT")
    return path


@pytest.mark.parametrize("suffix", ["wav", "flac", "aiff", "au", "ogg", "mp3"])
def test_formats_against_soundfile(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"tone.{suffix}"
    audio.write(path, tone(), RATE)
    expected, rate = soundfile.read(path, dtype="float32")
    samples, sample_rate = audio.read(path)
    # soundfile seeks to the start first, after which the MP3 decoder rounds differently
    np.testing.assert_allclose(samples, expected, rtol=0, atol=1e-6 if suffix == "mp3" else 0.0)
    assert (samples.dtype, sample_rate) == (np.float32, rate)
    assert np.abs(samples[500:7500] - tone()[500:7500]).max() < (
        1e-4 if suffix[0] in "wfa" else 0.1
    )


def test_read_against_librosa(stereo: Path) -> None:
    for mono in (True, False):
        for rate in (None, 16000):
            expected, _ = librosa.load(stereo, sr=rate, mono=mono, offset=0.1, duration=0.2)
            samples, _ = audio.read(stereo, rate, mono=mono, start=0.1, duration=0.2)
            assert abs(samples.shape[-1] - expected.shape[-1]) <= 1
            length = min(samples.shape[-1], expected.shape[-1])
            np.testing.assert_allclose(samples[..., :length], expected[..., :length], atol=1e-6)


def test_info(stereo: Path) -> None:
    info = audio.info(stereo)
    assert info == (22050, 2, 10_000, "WAV", "FLOAT")
    assert info.duration == pytest.approx(10_000 / 22050)


@pytest.mark.parametrize("channels", [None, 1, 2, 3])
@pytest.mark.parametrize("subtype", ["FLOAT", "PCM_24", "PCM_16"])
def test_written_samples_are_read_back(tmp_path: Path, channels: int | None, subtype: str) -> None:
    samples = noise(500, channels=channels)
    path = tmp_path / "deep" / "x.wav"
    audio.write(path, samples, 8000, subtype=subtype)
    back = audio.read(path, mono=channels is None).samples
    assert back.shape == samples.shape
    step = {"FLOAT": 0.0, "PCM_24": 2.0**-23, "PCM_16": 2.0**-15}[subtype]
    assert np.abs(back - samples).max() <= step


def test_tensors_and_integers_are_written(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    audio.write(path, ops.array([0.0, 0.5, -0.5]), 8000)
    assert audio.read(path).samples.tolist() == [0.0, 0.5, -0.5]
    audio.write(path, np.array([0, 16384, -32768], np.int16), 8000)
    assert audio.read(path).samples.tolist() == [0.0, 0.5, -1.0]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    audio.write(path, tone(), RATE)
    before = path.read_bytes()
    for bad, reason in [
        (np.array([0.0, np.nan]), "sample 1 .*NaN"),
        (np.array([0.0, 1.5]), "clipped.*subtype='FLOAT'"),
        (np.zeros(0, np.float32), "no samples"),
    ]:
        with pytest.raises(ArgumentError, match=reason) as caught:
            audio.write(path, bad, RATE)
        assert str(path) in str(caught.value)
    with pytest.raises(ArgumentError, match="cannot be written as PCM_99"):
        audio.write(path, tone(), RATE, subtype="PCM_99")
    with pytest.raises(ShapeError, match="channels, samples"):
        audio.write(path, np.zeros((1, 2, 3), np.float32), RATE)
    with pytest.raises(ArgumentTypeError, match="not bool"):
        audio.write(path, np.zeros(3, bool), RATE)
    for rate in (0, -8000):
        with pytest.raises(ArgumentError, match="sample_rate must be at least 1"):
            audio.write(path, tone(), rate)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.wav"]
    for name in ("x.xyz", "x", "x.raw"):
        with pytest.raises(ArgumentError, match=r"must end in \.wav"):
            audio.write(tmp_path / name, tone(), RATE)


def damaged(folder: Path, kind: str) -> Path:
    path = folder / ("x.flac" if "flac" in kind else "x.mp3" if "mp3" in kind else "x.wav")
    if kind == "missing":
        return path
    audio.write(path, noise(16_000), RATE)
    content = path.read_bytes()
    if kind.startswith("truncated"):
        path.write_bytes(content[: len(content) // 2])
    elif kind == "header only":
        path.write_bytes(content[:20])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("The quick brown fox jumps over the lazy dog.\n" * 20)
    elif kind == "nan":
        samples = noise(3_000_000)
        samples[2_500_000] = np.nan
        soundfile.write(path, samples, RATE, subtype="FLOAT")
    elif kind == "no samples":
        soundfile.write(path, np.zeros(0), RATE)
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    elif kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    return path


DAMAGE = {
    "truncated": r"truncated: the header declares 320\d\d bytes",
    "truncated flac": "not a readable audio file|truncated",
    "truncated mp3": "truncated: the header declares 16000 frames",
    "header only": "not a readable audio file|truncated",
    "empty": r"the file is empty \(0 bytes\)",
    "text": r"not a readable audio file \(Format not recognised\)",
    "nan": "sample 2500000 is NaN or infinite",
    "no samples": "contains no samples",
    "missing": "No such file or directory",
    "folder": "Is a directory|not a regular file",
    "pipe": "not a regular file",
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_files_are_errors_with_file_and_reason(tmp_path: Path, kind: str) -> None:
    path = damaged(tmp_path, kind)
    with pytest.raises(DataFileError, match=DAMAGE[kind]) as caught:
        audio.read(path)
    assert str(path) in str(caught.value)
    with pytest.raises(DataFileError, match=DAMAGE[kind]):
        list(audio.stream(path, 1000))


def test_raw_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.raw").write_bytes(bytes(1000))
    with pytest.raises(DataFileError, match=r"x\.raw: a \.raw file has no header"):
        audio.read(tmp_path / "x.raw")


def test_a_file_written_to_a_pipe_has_no_length_in_its_header(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    audio.write(path, tone(), RATE)
    content = bytearray(path.read_bytes())
    content[4:8] = content[40:44] = struct.pack("<I", 0xFFFFFFFF)
    path.write_bytes(content)
    np.testing.assert_allclose(audio.read(path).samples, tone(), atol=2**-15)


def test_bad_arguments_of_read(stereo: Path) -> None:
    for rate in (0, -1):
        with pytest.raises(ArgumentError, match="sample_rate must be at least 1"):
            audio.read(stereo, rate)
    for rate in ("fast", 0.5, True):
        with pytest.raises(ArgumentTypeError, match="sample_rate must be an integer"):
            audio.read(stereo, rate)
    for value in (-1.0, math.nan, math.inf):
        with pytest.raises(ArgumentError, match="start must be a time"):
            audio.read(stereo, start=value)
    with pytest.raises(ArgumentTypeError, match="duration must be a time in seconds"):
        audio.read(stereo, duration="1 s")
    with pytest.raises(ArgumentError, match="less than a sample"):
        audio.read(stereo, duration=1e-9)
    with pytest.raises(
        DataFileError, match=r"stereo\.wav: start=5 s is not before the end at 0\.4"
    ):
        audio.read(stereo, start=5.0)


@pytest.mark.parametrize(
    ("frames", "hop"), [(1000, None), (1000, 400), (7, 7), (20_000, 1), (1, 1)]
)
def test_blocks_against_slices(stereo: Path, frames: int, hop: int | None) -> None:
    whole = audio.read(stereo).samples
    blocks = list(audio.stream(stereo, frames, hop))
    step = hop or frames
    count = 1 + max(0, -(-(len(whole) - frames) // step))
    assert len(blocks) == count
    for number, block in enumerate(blocks):
        np.testing.assert_array_equal(block, whole[number * step : number * step + frames])
    padded = list(audio.stream(stereo, frames, hop, pad=True))
    assert {len(block) for block in padded} == {frames}


@pytest.mark.parametrize("mono", [True, False])
def test_resampled_blocks_equal_the_whole(stereo: Path, mono: bool) -> None:
    whole = audio.read(stereo, 16000, mono=mono).samples
    blocks = list(audio.stream(stereo, 333, sample_rate=16000, mono=mono))
    np.testing.assert_array_equal(np.concatenate(blocks, axis=-1), whole)


def test_streaming_takes_constant_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.wav"
    soundfile.write(path, np.zeros(4_000_000, np.int16), 48000)

    def peak(blocks: int | None) -> int:
        tracemalloc.start()
        for number, _ in enumerate(audio.stream(path, 4096, 1024, sample_rate=16000)):
            if number == blocks:
                break
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(None) < 1.2 * peak(50) + 100_000 < 4_000_000


def test_bad_arguments_of_stream(stereo: Path) -> None:
    with pytest.raises(ArgumentError, match=r"hop \(11\) must be at most frames \(10\)"):
        audio.stream(stereo, 10, 11)
    with pytest.raises(ArgumentError, match="frames must be at least 1"):
        audio.stream(stereo, 0)
    with pytest.raises(ArgumentError, match="hop must be at least 1"):
        audio.stream(stereo, 10, 0)
