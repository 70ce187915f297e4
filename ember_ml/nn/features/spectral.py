"""Short-time Fourier transform and spectrogram."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dtype import complex64, complex128
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn.features.framing import FrameFeatures, PadMode, WindowName
from ember_ml.registry import register


@register("features/stft")
class STFT(FrameFeatures):
    """Short-time Fourier transform: complex spectra of windowed frames.

    With the defaults it equals `librosa.stft`, with the frames before the frequencies.

    Args:
        n_fft: Number of samples of a frame. Default: 2048.
        hop: Number of samples between two frames. Default: a quarter of the window.
        win_length: Length of the window, centered in the frame. Default: `n_fft`.
        window: "hann", "hamming", "blackman" or "bartlett". Default: "hann".
        center: Whether frame t is centered at sample t * hop; else it starts there. Default: True.
        pad_mode: Padding at both ends if `center`: "constant" (zeros) or "reflect".
            Default: "constant".

    Shape: (..., samples) -> (..., frames, n_fft // 2 + 1), complex.

    Example:
        >>> stft = nn.features.STFT(n_fft=64, hop=16)
        >>> stft(ops.ones((2, 160))).shape
        (2, 11, 33)
    """

    def __init__(
        self,
        n_fft: Size = 2048,
        hop: Size | None = None,
        win_length: Size | None = None,
        window: WindowName = "hann",
        center: bool = True,
        pad_mode: PadMode = "constant",
    ) -> None:
        length = win_length or n_fft
        super().__init__(n_fft, hop or max(length // 4, 1), length, window, center, pad_mode)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each frequency bin."""
        return tuple(f"bin_{at}" for at in range(self.n_fft // 2 + 1))

    def no_values(self) -> Tensor:
        """Return an empty complex tensor."""
        wide = complex128 if self.window.dtype.bits > 32 else complex64
        return ops.astype(self.window[:0], wide)

    def spectra(self, x: Tensor) -> Tensor:
        """Return the spectra of a signal that is already padded.

        Args:
            x: (..., samples).
        """
        return ops.stft(x, self.n_fft, self.hop, window=self.window)

    def inverse(self, x: TensorLike, length: int | None = None) -> Tensor:
        """Return the signal that has the given spectra.

        Args:
            x: Spectra, (..., frames, n_fft // 2 + 1).
            length: Number of samples of the signal. Default: as many as the frames cover.
        """
        return ops.istft(
            x,
            self.n_fft,
            self.hop,
            window=self.window.value(),
            center=self.center,
            length=length,
        )


@register("features/spectrogram")
class Spectrogram(FrameFeatures):
    """Spectrogram: the magnitude of the short-time Fourier transform to a power.

    Args:
        n_fft: Number of samples of a frame. Default: 2048.
        hop: Number of samples between two frames. Default: a quarter of the window.
        win_length: Length of the window, centered in the frame. Default: `n_fft`.
        window: "hann", "hamming", "blackman" or "bartlett". Default: "hann".
        power: Exponent of the magnitude: 2 for power, 1 for the magnitude. Default: 2.
        center: Whether frame t is centered at sample t * hop; else it starts there. Default: True.
        pad_mode: Padding at both ends if `center`: "constant" (zeros) or "reflect".
            Default: "constant".

    Shape: (..., samples) -> (..., frames, n_fft // 2 + 1).

    Example:
        >>> spectrogram = nn.features.Spectrogram(n_fft=64, hop=16)
        >>> spectrogram(ops.ones(160)).shape
        (11, 33)
    """

    def __init__(
        self,
        n_fft: Size = 2048,
        hop: Size | None = None,
        win_length: Size | None = None,
        window: WindowName = "hann",
        power: Positive = 2.0,
        center: bool = True,
        pad_mode: PadMode = "constant",
    ) -> None:
        length = win_length or n_fft
        super().__init__(n_fft, hop or max(length // 4, 1), length, window, center, pad_mode)
        self.power = power

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each frequency bin."""
        return tuple(f"bin_{at}" for at in range(self.n_fft // 2 + 1))

    def spectra(self, x: Tensor) -> Tensor:
        """Return the spectrogram of a signal that is already padded.

        Args:
            x: (..., samples).
        """
        return spectrogram(self, x, self.power)


def spectrogram(module: FrameFeatures, x: Tensor, power: float) -> Tensor:
    """Return |spectrum|^power of the frames of a signal that is already padded.

    Args:
        module: Window and hop.
        x: (..., samples).
        power: Exponent of the magnitude. At 0, the gradient of a power below 2 is 0.
    """
    energy = ops.power_spectra(x, module.window, module.hop)
    if power == 2.0:
        return energy
    positive = ops.greater(energy, 0)
    safe = ops.where(positive, energy, ops.ones_like(energy))
    return ops.where(positive, ops.pow(safe, power / 2.0), ops.zeros_like(energy))
