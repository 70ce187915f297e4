"""Mel spectrogram in the conventions of librosa, HTK and Whisper."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import NonNegative, Positive, Size
from ember_ml.nn.features import mel_filters
from ember_ml.nn.features.decibels import needs_peak, scaled
from ember_ml.nn.features.framing import FrameFeatures, PadMode, StreamState, WindowName
from ember_ml.nn.features.spectral import spectrogram
from ember_ml.nn.parameter import Buffer
from ember_ml.registry import register

Convention: TypeAlias = Literal["librosa", "htk", "whisper"]
MelScale: TypeAlias = Literal["power", "db", "log", "whisper"]
FilterNorm: TypeAlias = Literal["slaney", "none"]


@register("features/mel_spectrogram")
class MelSpectrogram(FrameFeatures):
    """Mel spectrogram: the power of frames in triangular frequency bands.

    ============  ======  ====  ======  ===========  ======  =========  ==========
    convention    n_fft   hop   n_mels  mel scale    norm    scale      pad_mode
    ============  ======  ====  ======  ===========  ======  =========  ==========
    "librosa"     2048    512   128     Slaney       slaney  "power"    "constant"
    "htk"         2048    512   128     HTK          none    "power"    "constant"
    "whisper"     400     160   80      Slaney       slaney  "whisper"  "reflect"
    ============  ======  ====  ======  ===========  ======  =========  ==========

    "librosa" equals `librosa.feature.melspectrogram`, "htk" the same with `htk=True, norm=None`,
    and "whisper" the log-mel features of Whisper, without its last frame. Whisper expects signals
    of 30 s: crop or pad them with `data.audio.fit_length(samples, 480000)`.

    Args:
        sample_rate: Number of samples per second.
        n_mels: Number of bands. Default: that of the convention.
        n_fft: Number of samples of a frame. Default: that of the convention.
        hop: Number of samples between two frames. Default: that of the convention, or a quarter of
            `n_fft` if that is given.
        convention: "librosa", "htk" or "whisper". Default: "librosa".
        win_length: Length of the window, centered in the frame. Default: `n_fft`.
        window: "hann", "hamming", "blackman" or "bartlett". Default: "hann".
        f_min: Lowest frequency in Hz. Default: 0.
        f_max: Highest frequency in Hz. Default: half of the sample rate.
        power: Exponent of the magnitude. Default: 2.
        norm: "slaney" (each band has area 1) or "none" (height 1). Default: that of the convention.
        scale: "power" (linear), "db" (10 log10), "log" (natural logarithm) or "whisper". Power
            below 1e-10 is raised to it before a logarithm. Default: that of the convention.
        top_db: Range of "db" below the maximum of each signal; None keeps all values. Default: 80.
        center: Whether frame t is centered at sample t * hop; else it starts there. Default: True.
        pad_mode: Padding at both ends if `center`: "constant" (zeros) or "reflect". Default: that
            of the convention.

    Shape: (..., samples) -> (..., frames, n_mels).

    Example:
        >>> mel = nn.features.MelSpectrogram(16000, n_mels=40, n_fft=400, hop=160)
        >>> mel(ops.ones((2, 16000))).shape
        (2, 101, 40)
        >>> state = mel.initial_state()
        >>> y, state = mel.step(ops.ones((2, 1000)), state)
        >>> y.shape, mel.flush(state).shape
        ((2, 6, 40), (2, 1, 40))
    """

    def __init__(
        self,
        sample_rate: Size,
        n_mels: Size | None = None,
        n_fft: Size | None = None,
        hop: Size | None = None,
        convention: Convention = "librosa",
        win_length: Size | None = None,
        window: WindowName = "hann",
        f_min: NonNegative = 0.0,
        f_max: Positive | None = None,
        power: Positive = 2.0,
        norm: FilterNorm | None = None,
        scale: MelScale | None = None,
        top_db: NonNegative | None = 80.0,
        center: bool = True,
        pad_mode: PadMode | None = None,
    ) -> None:
        whisper = convention == "whisper"
        hop = hop or (max(n_fft // 4, 1) if n_fft else 160 if whisper else 512)
        n_fft = n_fft or (400 if whisper else 2048)
        pad_mode = pad_mode or ("reflect" if whisper else "constant")
        super().__init__(n_fft, hop, win_length or n_fft, window, center, pad_mode)
        self.drop_last = whisper
        self.sample_rate = sample_rate
        self.n_mels = n_mels or (80 if whisper else 128)
        self.power = power
        self.scale = scale or ("whisper" if whisper else "power")
        self.top_db = top_db
        area = (norm or ("none" if convention == "htk" else "slaney")) == "slaney"
        frequencies = self._corners(f_min, f_max or sample_rate / 2, convention)
        filters = mel_filters.filters(frequencies, n_fft, sample_rate, area)
        self.filters = Buffer(filters, persistent=False)
        self.frequencies = tuple(frequencies[1:-1])

    def _corners(self, f_min: float, f_max: float, convention: str) -> list[float]:
        if not f_min < f_max <= self.sample_rate / 2:
            raise ArgumentError(
                f"{type(self).__name__}: expected f_min < f_max <= sample_rate / 2, got "
                f"f_min={f_min}, f_max={f_max} and sample_rate={self.sample_rate}"
            )
        scale = mel_filters.HTK if convention == "htk" else mel_filters.SLANEY
        return mel_filters.corners(scale, self.n_mels, f_min, f_max)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each band; `frequencies` has their centers in Hz."""
        return tuple(f"mel_{at}" for at in range(self.n_mels))

    def spectra(self, x: Tensor) -> Tensor:
        """Return the power in each band of a signal that is already padded.

        Args:
            x: (..., samples).
        """
        return ops.matmul(spectrogram(self, x, self.power), self.filters)

    def rescale(self, y: Tensor, peak: Tensor | None) -> Tensor:
        """Return the features on their final scale.

        Args:
            y: Result of `spectra`.
            peak: Largest power of each signal, for scales that depend on it.
        """
        return scaled(y, self.scale, self.top_db, peak)

    def find_peak(self, y: Tensor) -> Tensor | None:
        """Return the largest power of each signal; None if the scale does not depend on it.

        Args:
            y: Result of `spectra`.
        """
        if not needs_peak(self.scale, self.top_db):
            return None
        return ops.max(y, axis=(-2, -1), keepdims=True)

    def initial_state(self, peak: float | None = None) -> StreamState:
        """Return the state before the first chunk of a stream.

        Args:
            peak: Largest power of the whole signal (the maximum of the features with
                `scale="power"`). The scale "db" with `top_db` and the scale "whisper" depend on it.
                Other scales do not need it. Default: none.
        """
        if peak is None and needs_peak(self.scale, self.top_db):
            name = "top_db" if self.scale == "db" else "scale='whisper'"
            raise ArgumentError(
                f"{type(self).__name__}.initial_state: {name} depends on the maximum of the whole "
                "signal, which a stream does not know; pass peak=, or use another scale"
                + (" or top_db=None" if self.scale == "db" else "")
            )
        return StreamState(peak=peak)
