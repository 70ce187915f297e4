"""Rows for `ember_ml.ops.signal.spectra`."""

from __future__ import annotations

import numpy as np
import torch
from scipy.signal import get_window

from tests.conformance.cases.signal.framing import EXACT, frames
from tests.conformance.table import FLOATS, case, real


def lifted(dtype):
    return "complex128" if dtype == "float64" else "complex64"


def torch_stft(
    x,
    frame_length,
    hop_length=None,
    fft_length=None,
    window="hann",
    center=False,
    pad_mode="reflect",
):
    """Return torch.stft with the frame axis before the frequencies."""
    taper = window if isinstance(window, list) else get_window(window or "boxcar", frame_length)
    found = torch.stft(
        torch.from_numpy(np.ascontiguousarray(x)),
        frame_length,
        hop_length or max(frame_length // 4, 1),
        window=torch.from_numpy(np.asarray(taper, np.float64)),
        center=center,
        pad_mode=pad_mode,
        return_complex=True,
    )
    return np.moveaxis(found.numpy(), -2, -1)


STFT = "signal.spectra.stft"
case(STFT, real(2, 12), reference=np.fft.rfft, result=lifted)
case(
    STFT,
    real(2, 5, 7),
    fft_length=9,
    reference=lambda x, fft_length: np.fft.rfft(x, fft_length),
    dtypes=EXACT,
    result=lifted,
)
case(STFT, real(2, 64), 16, 4, reference=torch_stft, result=lifted, rtol=2.0)
for options in (
    {"window": "hamming"},
    {"window": None},
    {"hop_length": 5},
    {"hop_length": 16},
    {"center": True},
    {"center": True, "pad_mode": "constant", "window": "blackman"},
    {"window": [0.5, 1.0] * 8},
):
    case(
        STFT,
        real(3, 50),
        16,
        reference=torch_stft,
        dtypes=EXACT,
        result=lifted,
        rtol=2.0,
        **options,
    )
for length in (1, 2, 9):
    case(
        STFT,
        real(30),
        length,
        reference=torch_stft,
        dtypes=EXACT,
        result=lifted,
        rtol=2.0,
        center=length > 1,
    )
case(
    STFT,
    real(2, 40),
    8,
    2,
    16,
    reference=lambda x, n, hop, size: np.fft.rfft(frames(x, n, hop) * get_window("hann", n), size),
    dtypes=EXACT,
    result=lifted,
)
for power in (1.0, 2.0, 0.5):
    case(
        "signal.spectra.spectrogram",
        real(2, 40),
        16,
        4,
        power=power,
        reference=lambda x, n, hop, power: np.abs(torch_stft(x, n, hop)) ** power,
        dtypes=EXACT if power != 2.0 else FLOATS,
        rtol=4.0,
    )
for length, options in ((16, {}), (9, {}), (12, {"fft_length": 16}), (8, {"fft_length": 13})):
    case(
        "signal.spectra.power_spectra",
        real(2, 42),
        real(length, low=0.1, high=1.0),
        5,
        reference=lambda x, window, hop, fft_length=None: (
            np.abs(np.fft.rfft(frames(x, len(window), hop) * window, fft_length)) ** 2
        ),
        rtol=4.0,
        **options,
    )


def torch_istft(x, frame_length, hop_length=None, window="hann", length=None, **_):
    taper = torch.from_numpy(get_window(window, frame_length))
    spectrum = torch.from_numpy(np.ascontiguousarray(np.moveaxis(x, -1, -2)))
    return torch.istft(spectrum, frame_length, hop_length, window=taper, length=length).numpy()


ISTFT = "signal.spectra.istft"
for options in (
    {},
    {"hop_length": 3},
    {"window": "hamming"},
    {"length": 37},
    {"length": 20},
    {"hop_length": 8, "window": "hamming"},
):
    case(
        ISTFT,
        real(2, 9, 9),
        16,
        center=True,
        reference=torch_istft,
        dtypes=("complex64", "complex128"),
        result="real",
        **options,
    )


SIGNAL = np.random.default_rng(0).uniform(-1, 1, (2, 61))
for length, hop, window, center in (
    (16, 4, "hann", True),
    (16, 8, "hann", True),
    (15, 5, "hamming", True),
    (8, 8, None, False),
    (9, 3, "hamming", False),
    (4, 1, "kaiser", True),
):
    covered = 61 if center else (61 - length) // hop * hop + length
    spectrum = torch_stft(
        SIGNAL,
        length,
        hop,
        window=("kaiser", 12.0) if window == "kaiser" else window,
        center=center,
    )
    case(
        ISTFT,
        real(*spectrum.shape, transform=lambda _, spectrum=spectrum: spectrum),
        length,
        hop,
        fft_length=length,
        window=window,
        center=center,
        length=covered,
        reference=lambda x, *_, length, **__: SIGNAL[:, :length],
        dtypes=("complex64", "complex128"),
        result="real",
        rtol=4.0,
    )
