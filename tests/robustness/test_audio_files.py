"""Damaged audio files: every change of bytes gives samples or an error that names the file."""

from __future__ import annotations

import functools
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ember_ml.data import DataFileError, audio


@functools.cache
def intact(suffix: str) -> bytes:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x.{suffix}"
        audio.write(path, 0.1 * rng.standard_normal((2, 700)).astype(np.float32), 8000)
        return path.read_bytes()


@pytest.mark.parametrize("suffix", ["wav", "flac", "aiff", "au", "ogg"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_changed_bytes(suffix: str, data: st.DataObject) -> None:
    content = bytearray(intact(suffix))
    header = st.integers(0, 60)
    anywhere = st.integers(0, len(content) - 1)
    for at in data.draw(st.lists(header | anywhere, max_size=4), label="changed"):
        content[at] = data.draw(st.integers(0, 255), label="byte")
    end = data.draw(st.none() | st.integers(0, len(content)), label="end")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x.{suffix}"
        path.write_bytes(content[:end])
        try:
            samples, rate = audio.read(path, mono=False)
        except DataFileError:
            for read in (audio.read, lambda file: list(audio.stream(file, 100))):
                with pytest.raises(DataFileError, match=re.escape(str(path))):
                    read(path)
            return
        assert samples.ndim == 2
        assert samples.size > 0
        assert rate >= 1
        assert np.isfinite(samples).all()
        blocks = np.concatenate(list(audio.stream(path, 100, mono=False)), axis=-1)
        np.testing.assert_array_equal(blocks, samples)
