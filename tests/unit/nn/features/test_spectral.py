"""Spectral features: against librosa and Whisper's extractor, streamed, padded, differentiated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import librosa
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import WhisperFeatureExtractor

import ember_ml as ember
from ember_ml import autodiff, ops
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.backend import use_backend
from ember_ml.nn import features
from tests.backends import other_than
from tests.unit.data.audio.signals import WITH_LIBROSA, chirp, noise

pytestmark = WITH_LIBROSA
RATE = 16000
SIGNAL = np.stack([chirp(6000), noise(6000, seed=3)])

STFT: dict[str, dict[str, Any]] = {
    "defaults": {},
    "short": {"n_fft": 400, "hop": 160},
    "odd": {"n_fft": 255, "hop": 100},
    "reflect": {"n_fft": 512, "pad_mode": "reflect"},
    "not centered": {"n_fft": 512, "hop": 77, "center": False},
    "short window": {"n_fft": 512, "win_length": 301, "hop": 128},
    "hamming": {"n_fft": 256, "window": "hamming"},
    "gaps": {"n_fft": 64, "hop": 100},
}


def in_librosa(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of librosa's functions."""
    names = {"hop": "hop_length", "f_min": "fmin", "f_max": "fmax"}
    return {names.get(name, name): value for name, value in options.items()}


def assert_close_to_peak(y: ops.Tensor, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    expected = np.swapaxes(expected, -1, -2)
    assert y.shape == expected.shape
    assert np.abs(y.numpy() - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("name", STFT)
def test_stft_and_spectrogram_against_librosa(name: str, backend: str) -> None:
    options = STFT[name]
    expected = librosa.stft(SIGNAL, **in_librosa(options))
    stft = features.STFT(**options)
    assert_close_to_peak(stft(SIGNAL), expected)
    assert len(stft.feature_names) == expected.shape[-2]
    assert stft.num_frames(6000) == expected.shape[-1]
    for power in (1.0, 2.0):
        assert_close_to_peak(
            features.Spectrogram(**options, power=power)(SIGNAL), np.abs(expected) ** power
        )


MEL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "librosa": ({}, {}),
    "40 bands": (opts := {"n_mels": 40, "n_fft": 400, "hop": 160}, in_librosa(opts)),
    "range": (opts := {"n_mels": 20, "f_min": 300.0, "f_max": 5000.0}, in_librosa(opts)),
    "magnitude": ({"power": 1.0}, {"power": 1.0}),
    "htk": ({"convention": "htk"}, {"htk": True, "norm": None}),
    "htk slaney": ({"convention": "htk", "norm": "slaney"}, {"htk": True}),
    "height 1": ({"norm": "none"}, {"norm": None}),
}


@pytest.mark.parametrize("name", MEL)
def test_mel_against_librosa(name: str, backend: str) -> None:
    options, others = MEL[name]
    expected = librosa.feature.melspectrogram(y=SIGNAL, sr=RATE, **others)
    mel = features.MelSpectrogram(RATE, **options)
    assert_close_to_peak(mel(SIGNAL), expected)
    assert len(mel.feature_names) == len(mel.frequencies) == expected.shape[-2]
    decibels = features.MelSpectrogram(RATE, **options, scale="db")(SIGNAL).numpy()
    for row, power in zip(decibels, expected, strict=True):
        np.testing.assert_allclose(row.T, librosa.power_to_db(power), atol=2e-3)


def test_centers_of_the_bands_against_librosa() -> None:
    for convention, htk in (("librosa", False), ("htk", True)):
        mel = features.MelSpectrogram(22050, 64, convention=convention, f_min=20.0, f_max=8000.0)
        expected = librosa.mel_frequencies(66, fmin=20.0, fmax=8000.0, htk=htk)[1:-1]
        np.testing.assert_allclose(mel.frequencies, expected, rtol=1e-9)


MFCC: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "librosa": ({}, {}),
    "13 of 40": (
        {"n_mfcc": 13, "n_mels": 40, "n_fft": 400, "hop": 160},
        {"n_mfcc": 13, "n_mels": 40, "n_fft": 400, "hop_length": 160},
    ),
    "htk": ({"convention": "htk"}, {"htk": True, "mel_norm": None}),
    "htk slaney": ({"convention": "htk", "norm": "slaney"}, {"htk": True}),
    "lifter": ({"lifter": 22.0}, {"lifter": 22}),
}


@pytest.mark.parametrize("name", MFCC)
def test_mfcc_against_librosa(name: str, backend: str) -> None:
    options, others = MFCC[name]
    mfcc = features.MFCC(RATE, **options)
    atol = 2e-3 * (1 + options.get("lifter", 0.0) / 2)
    for signal in SIGNAL:
        expected = librosa.feature.mfcc(y=signal, sr=RATE, **others)
        y = mfcc(signal).numpy().T
        np.testing.assert_allclose(y, expected, atol=atol)
        assert len(mfcc.feature_names) == len(expected)
    np.testing.assert_allclose(mfcc(SIGNAL).numpy()[1].T, y, atol=atol)  # each by itself


@pytest.mark.parametrize("top_db", [80.0, 20.0, None])
@pytest.mark.parametrize("ref", [1.0, 0.01])
def test_power_to_db_against_librosa(top_db: float | None, ref: float, backend: str) -> None:
    power = np.square(SIGNAL[:, :200])
    power[0, 0] = 0.0
    expected = librosa.power_to_db(power, ref=ref, top_db=top_db)
    np.testing.assert_allclose(
        features.power_to_db(ops.array(power), ref, top_db=top_db).numpy(), expected, atol=1e-4
    )
    back = features.db_to_power(ops.array(expected), ref)
    np.testing.assert_allclose(back.numpy(), librosa.db_to_power(expected, ref=ref), rtol=1e-4)


@pytest.mark.parametrize("n_mels", [80, 128])
def test_whisper_features(n_mels: int, backend: str) -> None:
    extractor = WhisperFeatureExtractor(feature_size=n_mels)
    options = {"sampling_rate": RATE, "return_tensors": "np", "padding": "do_not_pad"}
    mel = features.MelSpectrogram(RATE, n_mels, convention="whisper")
    for signal in (*SIGNAL, SIGNAL[0, :1600], SIGNAL[1, :1601]):
        expected = extractor(signal, **options)["input_features"][0]
        y = mel(signal).numpy().T
        assert y.shape == expected.shape
        np.testing.assert_allclose(y, expected, atol=2e-4)


def test_whisper_features_of_30_seconds() -> None:
    expected = WhisperFeatureExtractor()(SIGNAL[0], sampling_rate=RATE, return_tensors="np")
    padded = np.pad(SIGNAL[0], (0, 480_000 - 6000))
    with use_backend("numpy"):
        y = features.MelSpectrogram(RATE, convention="whisper")(padded)
    np.testing.assert_allclose(y.numpy().T, expected["input_features"][0], atol=2e-4)


STREAMED: dict[str, tuple[type, dict[str, Any]]] = {
    **{f"stft {name}": (features.STFT, options) for name, options in STFT.items()},
    "spectrogram": (features.Spectrogram, {"n_fft": 128, "hop": 50, "power": 1.0}),
    "reflected gaps": (
        features.Spectrogram,
        {"n_fft": 64, "hop": 100, "pad_mode": "reflect"},
    ),
    "gaps not centered": (features.Spectrogram, {"n_fft": 64, "hop": 100, "center": False}),
    "mel": (features.MelSpectrogram, {"sample_rate": RATE, "n_fft": 400, "hop": 160, "n_mels": 20}),
    "mel log": (
        features.MelSpectrogram,
        {"sample_rate": RATE, "n_fft": 256, "n_mels": 20, "scale": "log", "pad_mode": "reflect"},
    ),
    "whisper power": (
        features.MelSpectrogram,
        {"sample_rate": RATE, "convention": "whisper", "scale": "power"},
    ),
    "whisper gaps": (
        features.MelSpectrogram,
        {"sample_rate": RATE, "convention": "whisper", "scale": "log", "n_fft": 100, "hop": 160},
    ),
    "mfcc": (
        features.MFCC,
        {"sample_rate": RATE, "n_fft": 400, "hop": 160, "n_mels": 20, "top_db": None},
    ),
}


def streamed(module: Any, signal: np.ndarray, sizes: list[int], **options: float) -> np.ndarray:
    """Return the features of a stream with chunks of the sizes, and one with the rest."""
    state = module.initial_state(**options)
    parts = []
    for chunk in np.split(signal, np.cumsum(sizes), axis=-1):
        y, state = module.step(ops.array(chunk), state)
        parts.append(y.numpy())
        assert state.buffer.shape[-1] <= chunk.shape[-1] + 2 * 2048
    parts.append(module.flush(state).numpy())
    return np.concatenate(parts, axis=-2)


@settings(max_examples=12, deadline=None)
@given(st.data())
@pytest.mark.parametrize("name", STREAMED)
def test_streamed_equals_whole(name: str, data: st.DataObject) -> None:
    kind, options = STREAMED[name]
    with use_backend("numpy"):
        module = kind(**options)
        least = getattr(module, "n_fft", 400) + 200
        signal = SIGNAL[:, : data.draw(st.integers(least, 3500), label="samples")]
        sizes = data.draw(st.lists(st.integers(0, 900), max_size=5), label="sizes")
        whole = module(ops.array(signal)).numpy()
        y = streamed(module, signal, sizes)
        assert y.shape == whole.shape
        np.testing.assert_allclose(y, whole, atol=1e-4 * max(np.abs(whole).max(), 1.0) / 10)


@pytest.mark.parametrize("name", STREAMED)
def test_streams_on_every_backend(name: str, backend: str) -> None:
    kind, options = STREAMED[name]
    module = kind(**options)
    signal = SIGNAL[:, :2600]
    whole = module(ops.array(signal)).numpy()
    for sizes in ([0, 1, 1, 700, 3, 0, 450], [2600]):
        y = streamed(module, signal, sizes)
        assert y.shape == whole.shape
        np.testing.assert_allclose(y, whole, atol=1e-4 * max(np.abs(whole).max(), 1.0) / 10)
    one = streamed(module, signal[0, :2300], [7] * 3)  # without an axis of the batch
    np.testing.assert_allclose(one, module(ops.array(signal[0, :2300])).numpy(), atol=1e-3)


def test_scales_that_depend_on_the_maximum_stream_with_a_known_peak(backend: str) -> None:
    for options in ({"convention": "whisper"}, {"n_fft": 256, "scale": "db"}):
        module = features.MelSpectrogram(RATE, 30, **options)
        linear = features.MelSpectrogram(RATE, 30, **{**options, "scale": "power"})
        signal = SIGNAL[0]
        with pytest.raises(ArgumentError, match="depends on the maximum of the whole signal"):
            module.initial_state()
        peak = float(linear(signal).max())
        y = streamed(module, signal, [1000, 17], peak=peak)
        np.testing.assert_allclose(y, module(signal).numpy(), atol=2e-3)


PADDED = {
    **STREAMED,
    "whisper": (features.MelSpectrogram, {"sample_rate": RATE, "convention": "whisper"}),
    "mfcc top_db": (features.MFCC, {"sample_rate": RATE, "n_fft": 400, "hop": 160, "n_mels": 20}),
}


@pytest.mark.parametrize("name", PADDED)
def test_a_padded_batch_equals_its_signals(name: str, backend: str) -> None:
    kind, options = PADDED[name]
    module = kind(**options)
    lengths = np.array([2600, 2201, 3000])
    batch = np.stack([SIGNAL[0, :3000], SIGNAL[1, :3000], 0.1 * SIGNAL[0, 2000:5000]])
    for row, length in zip(batch, lengths, strict=True):
        row[length:] = np.nan
    y = module(ops.array(batch), lengths=ops.array(lengths)).numpy()
    frames = module.output_lengths(ops.array(lengths)).tolist()
    assert frames == [module.num_frames(int(length)) for length in lengths]
    for row, signal, length, count in zip(y, batch, lengths, frames, strict=True):
        alone = module(ops.array(signal[:length])).numpy()
        assert len(alone) == count
        np.testing.assert_allclose(row[:count], alone, atol=1e-4 * max(np.abs(alone).max(), 1.0))
        assert not row[count:].any()


def test_short_signals_of_a_padded_batch_are_reflected_as_numpy_does(backend: str) -> None:
    module = features.Spectrogram(n_fft=64, hop=16, pad_mode="reflect")
    batch = np.stack([SIGNAL[1, :100]] * 3)
    lengths = [100, 20, 2]
    y = module(ops.array(batch), lengths=ops.array(lengths)).numpy()
    outer = features.Spectrogram(n_fft=64, hop=16, center=False)
    for row, signal, length in zip(y, batch, lengths, strict=True):
        expected = outer(ops.array(np.pad(signal[:length], 32, mode="reflect"))).numpy()
        np.testing.assert_allclose(row[: len(expected)], expected, rtol=1e-3, atol=1e-5)


def torch_log_mel(x: torch.Tensor) -> torch.Tensor:
    window = torch.hann_window(256, dtype=x.dtype)
    spectrum = torch.stft(
        x, 256, 64, window=window, center=True, pad_mode="constant", return_complex=True
    )
    bank = torch.from_numpy(librosa.filters.mel(sr=RATE, n_fft=256, n_mels=12)).to(x.dtype)
    return torch.log(torch.clamp(bank @ spectrum.abs() ** 2, 1e-10))


def test_gradients_against_torch(backend: str) -> None:
    x = SIGNAL[:, :1000]
    mel = features.MelSpectrogram(RATE, 12, 256, 64, scale="log")
    weights = noise(2 * 16 * 12, seed=8).reshape(2, 16, 12)
    grad = autodiff.grad(lambda signal: ops.sum(mel(signal) * ops.array(weights)))(ops.array(x))
    leaf = torch.from_numpy(x.astype(np.float64)).requires_grad_()
    (torch_log_mel(leaf).mT * torch.from_numpy(weights)).sum().backward()
    expected = leaf.grad.numpy()
    assert np.abs(grad.numpy() - expected).max() <= 1e-3 * np.abs(expected).max()


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_gradient_of_silence_is_zero(power: float, backend: str) -> None:
    mel = features.MelSpectrogram(RATE, 8, 128, power=power)
    grad = autodiff.grad(lambda x: ops.sum(mel(x)))(ops.zeros(400))
    assert not grad.numpy().any()


def test_the_inverse_of_the_stft(backend: str) -> None:
    for options in ({"n_fft": 256}, {"n_fft": 256, "win_length": 200, "hop": 50}):
        stft = features.STFT(**options)
        back = stft.inverse(stft(SIGNAL), length=6000)
        np.testing.assert_allclose(back.numpy(), SIGNAL, atol=1e-5)
    with pytest.raises(NotImplementedError, match="MelSpectrogram has no inverse"):
        features.MelSpectrogram(RATE).inverse(SIGNAL)


@pytest.mark.parametrize("kind", ["mel_spectrogram", "mfcc", "stft", "spectrogram"])
def test_saved_and_moved(kind: str, backend: str, tmp_path: Path) -> None:
    options = {"n_fft": 256} | ({} if "s" in kind[0] else {"sample_rate": RATE, "n_mels": 20})
    module = ember.registry.create(f"features/{kind}", **options)
    assert module.fit(SIGNAL) is module
    ember.save(module, tmp_path / "saved")
    expected = module(SIGNAL).numpy()
    loaded = ember.load(tmp_path / "saved", backend=other_than(backend))
    assert loaded.config == module.config
    with use_backend(other_than(backend)):
        y = loaded(SIGNAL).numpy()
    np.testing.assert_allclose(y, expected, atol=2e-5 * np.abs(expected).max())
    module.to_backend(other_than(backend))
    np.testing.assert_allclose(module(SIGNAL).numpy(), expected, atol=2e-5 * np.abs(expected).max())


def test_bad_input(on_numpy: None) -> None:
    with pytest.raises(ShapeError, match="has no samples"):
        features.STFT()(np.zeros((2, 0), np.float32))
    with pytest.raises(ShapeError, match=r"Spectrogram: a signal of 99 samples is too short.* 100"):
        features.Spectrogram(n_fft=100, center=False)(SIGNAL[:, :99])
    with pytest.raises(ShapeError, match=r"pad_mode='reflect' it must have at least 51"):
        features.Spectrogram(n_fft=100, pad_mode="reflect")(SIGNAL[:, :50])
    mel = features.MelSpectrogram(RATE, 20, 400, 160)
    with pytest.raises(ShapeError, match="a signal of 0 samples is too short"):
        mel.flush(mel.initial_state())
    with pytest.raises(ShapeError, match=r"lengths of shape \(3,\)"):
        mel(SIGNAL, lengths=[1, 2, 3])
    with pytest.raises(ArgumentError, match=r"win_length \(500\) must be at most n_fft \(400\)"):
        features.STFT(400, win_length=500)
    with pytest.raises(ArgumentError, match=r"f_max=9000.0 and sample_rate=16000"):
        features.MelSpectrogram(RATE, f_max=9000.0)
    with pytest.raises(ArgumentError, match=r"n_mfcc \(41\) must be at most n_mels \(40\)"):
        features.MFCC(RATE, 41, 40)
    with pytest.raises(ArgumentError, match="top_db must be at least 0"):
        features.power_to_db([1.0], top_db=-1.0)
    with pytest.raises(ValueError, match="convention"):
        ember.registry.create("features/mel_spectrogram", sample_rate=RATE, convention="kaldi")
    with pytest.raises(ValueError, match="sample_rate"):
        ember.registry.create("features/mel_spectrogram", sample_rate=0)
