"""Mel-frequency cepstral coefficients."""

from __future__ import annotations

import math
from typing import Literal

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import NonNegative, Positive, Size
from ember_ml.nn.features.base import FeatureExtractor
from ember_ml.nn.features.framing import StreamState, WindowName
from ember_ml.nn.features.mel import FilterNorm, MelSpectrogram
from ember_ml.nn.parameter import Buffer
from ember_ml.registry import register


@register("features/mfcc")
class MFCC(FeatureExtractor):
    """Mel-frequency cepstral coefficients: the cosine transform of a mel spectrogram in decibels.

    The convention "librosa" equals `librosa.feature.mfcc`; "htk" uses the HTK mel scale with bands
    of height 1, as `librosa.feature.mfcc(htk=True, mel_norm=None)`.

    Args:
        sample_rate: Number of samples per second.
        n_mfcc: Number of coefficients, at most `n_mels`. Default: 20.
        n_mels: Number of mel bands. Default: 128.
        n_fft: Number of samples of a frame. Default: 2048.
        hop: Number of samples between two frames. Default: a quarter of `n_fft`.
        convention: "librosa" or "htk". Default: "librosa".
        win_length: Length of the window, centered in the frame. Default: `n_fft`.
        window: "hann", "hamming", "blackman" or "bartlett". Default: "hann".
        f_min: Lowest frequency in Hz. Default: 0.
        f_max: Highest frequency in Hz. Default: half of the sample rate.
        norm: "slaney" (each band has area 1) or "none" (height 1). Default: that of the convention.
        top_db: Range in decibels below the maximum of each signal; None keeps all values, which
            streams need. Default: 80.
        lifter: Length L of the sine lifter, which multiplies coefficient n by
            1 + L / 2 sin(pi (n + 1) / L). Default: 0, no lifter.
        center: Whether frame t is centered at sample t * hop, with zeros at both ends; else it
            starts there. Default: True.

    Shape: (..., samples) -> (..., frames, n_mfcc).

    Example:
        >>> mfcc = nn.features.MFCC(16000, n_mfcc=13, n_mels=40, n_fft=400, hop=160)
        >>> mfcc(ops.ones((2, 16000))).shape
        (2, 101, 13)
    """

    def __init__(
        self,
        sample_rate: Size,
        n_mfcc: Size = 20,
        n_mels: Size = 128,
        n_fft: Size = 2048,
        hop: Size | None = None,
        convention: Literal["librosa", "htk"] = "librosa",
        win_length: Size | None = None,
        window: WindowName = "hann",
        f_min: NonNegative = 0.0,
        f_max: Positive | None = None,
        norm: FilterNorm | None = None,
        top_db: NonNegative | None = 80.0,
        lifter: NonNegative = 0.0,
        center: bool = True,
    ) -> None:
        if n_mfcc > n_mels:
            raise ArgumentError(f"MFCC: n_mfcc ({n_mfcc}) must be at most n_mels ({n_mels})")
        self.n_mfcc = n_mfcc
        self.mel = MelSpectrogram(
            sample_rate,
            n_mels,
            n_fft,
            hop,
            convention,
            win_length,
            window,
            f_min,
            f_max,
            norm=norm,
            scale="db",
            top_db=top_db,
            center=center,
        )
        self.transform_matrix = Buffer(
            ops.array(_cosines(n_mels, n_mfcc, lifter)), persistent=False
        )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each coefficient."""
        return tuple(f"mfcc_{at}" for at in range(self.n_mfcc))

    def extract(self, x: TensorLike, lengths: TensorLike | None = None) -> Tensor:
        """Return the coefficients of a signal.

        Args:
            x: Signals, (..., samples).
            lengths: Number of samples of each signal of a padded batch, as in `MelSpectrogram`.
                Default: all samples are used.
        """
        return ops.matmul(self.mel(x, lengths), self.transform_matrix)

    def num_frames(self, samples: int) -> int:
        """Return the number of frames of a signal.

        Args:
            samples: Number of samples of the signal.
        """
        return self.mel.num_frames(samples)

    def output_lengths(self, lengths: TensorLike) -> Tensor:
        """Return the number of frames of each signal of a padded batch.

        Args:
            lengths: Number of samples of each signal, (batch,).
        """
        return self.mel.output_lengths(lengths)

    def initial_state(self, peak: float | None = None) -> StreamState:
        """Return the state before the first chunk of a stream.

        Args:
            peak: Largest mel power of the whole signal; needed unless `top_db` is None.
        """
        return self.mel.initial_state(peak)

    def step(self, chunk: TensorLike, state: StreamState) -> tuple[Tensor, StreamState]:
        """Return the frames that the next samples of a stream complete, and the next state.

        Args:
            chunk: The next samples, (..., samples), any number of them.
            state: Result of `initial_state` or of the last step.
        """
        y, state = self.mel.step(chunk, state)
        return self._coefficients(y), state

    def flush(self, state: StreamState) -> Tensor:
        """Return the remaining frames at the end of a stream.

        Args:
            state: State after the last step.
        """
        return self._coefficients(self.mel.flush(state))

    def _coefficients(self, y: Tensor) -> Tensor:
        if not y.size:
            return y[..., : self.n_mfcc]
        return ops.matmul(y, self.transform_matrix)


def _cosines(n_mels: int, n_mfcc: int, lifter: float) -> list[list[float]]:
    """Return the orthonormal DCT-II of n_mels values, (n_mels, n_mfcc), times the lifter."""

    def weight(number: int) -> float:
        scale = math.sqrt((1.0 if number == 0 else 2.0) / n_mels)
        return scale * (
            1.0 + lifter / 2.0 * math.sin(math.pi * (number + 1) / lifter) if lifter else 1.0
        )

    weights = [weight(number) for number in range(n_mfcc)]
    return [
        [
            value * math.cos(math.pi * number * (2 * band + 1) / (2 * n_mels))
            for number, value in enumerate(weights)
        ]
        for band in range(n_mels)
    ]
