"""Augmentation: determinism, the statistics that each transform promises, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data import ArrayDataset, DataLoader, audio, random_stream

from .signals import noise, tone

SAMPLES = {
    "gain": audio.Gain((-12.0, 12.0)),
    "noise": audio.AddNoise((0.0, 20.0)),
    "shift": audio.TimeShift(0.5),
    "wrapped shift": audio.TimeShift(0.5, wrap=True),
    "speed": audio.Speed((0.5, 2.0)),
    "crop": audio.RandomCrop(100),
    "sometimes": audio.Gain(6.0, probability=0.5),
    "all": audio.Compose(
        [audio.Gain(), audio.AddNoise(), audio.TimeShift(), audio.RandomCrop(300)]
    ),
}
SPECTROGRAMS = {
    "time": audio.TimeMask(10, 2),
    "frequency": audio.FrequencyMask(5, 2),
    "spec augment": audio.SpecAugment(5, 2, 20, 2, 0.2, -1.0),
}
ALL = {**SAMPLES, **SPECTROGRAMS}


def example(name: str) -> np.ndarray:
    return noise(60 * 40).reshape(60, 40) if name in SPECTROGRAMS else noise(1000)


@pytest.mark.parametrize("name", ALL)
def test_a_transform_depends_on_the_generator_alone(name: str) -> None:
    transform, array = ALL[name], example(name)
    before = array.copy()
    first, second = (transform(array, random_stream(7, 3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(array, before)
    assert first.dtype == np.float32
    others = [transform(array, random_stream(7, index)) for index in range(8)]
    assert any(not np.array_equal(first, other) for other in others)
    copied = pickle.loads(pickle.dumps(transform))
    np.testing.assert_array_equal(copied(array, random_stream(7, 3)), first)


@pytest.mark.parametrize("name", ALL)
def test_only_the_audio_of_an_example_changes(name: str) -> None:
    transform, array = ALL[name], example(name)
    alone = transform(array, random_stream(1, 2))
    samples, label = transform((array, 5), random_stream(1, 2))
    np.testing.assert_array_equal(samples, alone)
    assert label == 5
    named = transform({"audio": array, "speaker": "a"}, random_stream(1, 2))
    np.testing.assert_array_equal(named["audio"], alone)
    assert named["speaker"] == "a"


def test_the_signal_to_noise_ratio_is_exact() -> None:
    signal = tone(amplitude=0.3)
    for snr in (-5.0, 0.0, 10.0, 30.0):
        noisy = audio.AddNoise(snr)(signal, random_stream(0, 0))
        added = (noisy - signal).astype(np.float64)
        measured = 10 * np.log10(np.mean(signal.astype(np.float64) ** 2) / np.mean(added**2))
        assert measured == pytest.approx(snr, abs=1e-3)
    silence = np.zeros(100, np.float32)
    np.testing.assert_array_equal(audio.AddNoise(0.0)(silence, random_stream(0, 0)), silence)


def test_the_gain_is_uniform_in_decibels() -> None:
    gains = [
        20
        * np.log10(float(audio.Gain((-6.0, 6.0))(np.ones(1, np.float32), random_stream(0, i))[0]))
        for i in range(400)
    ]
    assert -6 <= min(gains) < -5.5
    assert 5.5 < max(gains) <= 6
    assert abs(np.mean(gains)) < 0.5


def test_a_shift_moves_samples() -> None:
    samples = np.arange(1, 101, dtype=np.float32)
    shifts = set()
    for index in range(50):
        shifted = audio.TimeShift(0.2)(samples, random_stream(0, index))
        kept = np.flatnonzero(shifted)
        shift = int(kept[0] + 1 - shifted[kept[0]])
        shifts.add(shift)
        expected = np.zeros(100, np.float32)
        expected[max(shift, 0) : 100 + min(shift, 0)] = samples[
            max(-shift, 0) : 100 - max(shift, 0)
        ]
        np.testing.assert_array_equal(shifted, expected)
    assert -20 <= min(shifts) < 0 < max(shifts) <= 20
    wrapped = audio.TimeShift(0.2, wrap=True)(samples, random_stream(0, 1))
    assert sorted(wrapped) == samples.tolist()


def test_speed_changes_length_and_pitch() -> None:
    faster = audio.Speed(1.25)(tone(400.0, 16000), random_stream(0, 0))
    assert len(faster) == 12800
    peak = np.abs(np.fft.rfft(faster)).argmax() * 16000 / len(faster)
    assert peak == pytest.approx(500.0, abs=2.0)


@pytest.mark.parametrize("length", [50, 100, 150])
def test_random_crops(length: int) -> None:
    samples = np.arange(1, 101, dtype=np.float32)
    starts = set()
    for index in range(60):
        crop = audio.RandomCrop(length)(samples, random_stream(0, index))
        assert len(crop) == length
        inside = crop[crop > 0]
        assert len(inside) == min(length, 100)
        assert (np.diff(inside) == 1).all()
        starts.add((int(inside[0]), int(np.flatnonzero(crop)[0])))
    assert len(starts) == 1 if length == 100 else len(starts) > 20


def test_masks_cover_consecutive_frames_and_features() -> None:
    ones = np.ones((80, 30), np.float32)
    widths = set()
    for index in range(100):
        masked = audio.TimeMask(12)(ones, random_stream(0, index))
        rows = np.flatnonzero((masked == 0).all(axis=1))
        assert (masked == 0).sum() == 30 * len(rows)
        assert len(rows) == 0 or rows[-1] - rows[0] + 1 == len(rows)
        widths.add(len(rows))
        columns = np.flatnonzero(
            (audio.FrequencyMask(7, value=-3.0)(ones, random_stream(0, index)) == -3).all(axis=0)
        )
        assert len(columns) <= 7
    assert widths == set(range(13))
    few = audio.TimeMask(1000, fraction=0.1)(ones, random_stream(0, 1))
    assert (few == 0).all(axis=1).sum() <= 8


def test_a_loader_applies_them_the_same_with_any_number_of_workers() -> None:
    data = ArrayDataset(noise(12 * 200).reshape(12, 200), np.arange(12))
    mapped = data.map(SAMPLES["all"], seed=3)
    epochs = []
    for workers in (0, 2):
        loader = DataLoader(mapped, 4, shuffle=True, num_workers=workers, backend="numpy")
        epochs.append([[x.numpy() for x, _ in loader] for _ in range(2)])
    np.testing.assert_array_equal(epochs[0], epochs[1])
    assert not np.array_equal(epochs[0][0], epochs[0][1])


def test_bad_arguments() -> None:
    rng = random_stream(0, 0)
    with pytest.raises(ArgumentError, match=r"Gain: decibels must be .* low <= high"):
        audio.Gain((3.0, -3.0))
    with pytest.raises(ArgumentError, match="Gain: decibels"):
        audio.Gain((0.0, np.nan))
    with pytest.raises(ArgumentError, match="probability must be at most 1"):
        audio.Gain(probability=1.5)
    with pytest.raises(ArgumentError, match="TimeShift: fraction must be at most 1"):
        audio.TimeShift(2.0)
    with pytest.raises(ArgumentTypeError, match="Speed: factor must be a number or"):
        audio.Speed("fast")
    with pytest.raises(ArgumentTypeError, match=r"rng must be a numpy\.random"):
        audio.Gain()(tone(), None)
    with pytest.raises(ArgumentError, match="Gain: the example has no samples"):
        audio.Gain()(np.zeros(0, np.float32), rng)
    with pytest.raises(ArgumentError, match="must have a key 'audio'; it has 'sound'"):
        audio.Gain()({"sound": tone()}, rng)
    with pytest.raises(ShapeError, match=r"TimeMask: expected a spectrogram"):
        audio.TimeMask(3)(tone(), rng)
    with pytest.raises(ArgumentTypeError, match="Compose: 3 is not a function"):
        audio.Compose([3])
    with pytest.raises(ArgumentError, match="length must be at least 1"):
        audio.fit_length(tone(), 0)
    with pytest.raises(ArgumentError, match="position must be"):
        audio.fit_length(tone(), 3, "middle")
