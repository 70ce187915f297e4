"""Resampling: against librosa, and streamed against whole."""

from __future__ import annotations

import librosa
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ember_ml._core.errors import ArgumentError
from ember_ml.data import audio

from .signals import WITH_LIBROSA, noise, tone

pytestmark = WITH_LIBROSA

RATES = [
    (44100, 16000),
    (16000, 48000),
    (8000, 22050),
    (48000, 16000),
    (16000, 16001),
    (8000, 8000),
]


@pytest.mark.parametrize(("source", "target"), RATES)
@pytest.mark.parametrize("channels", [None, 2])
def test_resample_against_librosa(source: int, target: int, channels: int | None) -> None:
    samples = noise(5000, channels=channels)
    expected = librosa.resample(samples, orig_sr=source, target_sr=target)
    resampled = audio.resample(samples, source, target)
    assert resampled.shape[-1] == int(5000 * target / source + 0.5)
    length = min(expected.shape[-1], resampled.shape[-1])
    np.testing.assert_allclose(resampled[..., :length], expected[..., :length], atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(RATES),
    st.lists(st.integers(0, 3000), min_size=1, max_size=6),
    st.sampled_from([1, 2]),
)
def test_streamed_resampling_equals_the_whole(
    rates: tuple[int, int], sizes: list[int], channels: int
) -> None:
    samples = noise(max(sum(sizes), 1), channels=channels if channels > 1 else None)
    resampler = audio.Resampler(*rates, channels=channels)
    for _ in range(2):  # after a flush, the resampler starts again
        ends = np.cumsum(sizes)
        chunks = np.split(samples, ends, axis=-1)
        parts = [*map(resampler.process, chunks), resampler.flush()]
        whole = audio.resample(samples, *rates)
        np.testing.assert_array_equal(np.concatenate(parts, axis=-1), whole)


def test_a_resampled_tone_is_not_shifted() -> None:
    resampled = audio.resample(tone(500.0, 16000, 16000), 16000, 8000)
    expected = tone(500.0, 8000, 8000)
    assert np.abs(resampled - expected)[200:-200].max() < 1e-4


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="target_rate must be at least 1"):
        audio.resample(tone(), 8000, 0)
    with pytest.raises(ArgumentError, match="quality must be QQ"):
        audio.resample(tone(), 8000, 16000, quality="best")
    with pytest.raises(ArgumentError, match="has 2 channels, the resampler 1"):
        audio.Resampler(8000, 16000).process(noise(10, channels=2))
