"""Random masks of spectrograms (SpecAugment)."""

from __future__ import annotations

import numpy as np

from ember_ml._core.errors import ShapeError
from ember_ml.data.audio.augmentation import Augmentation
from ember_ml.data.audio.samples import check_fraction
from ember_ml.data.conversion import to_host
from ember_ml.data.errors import check_integer


class SpectrogramAugmentation(Augmentation):
    """Augmentation of spectrograms, (..., frames, features)."""

    def check(self, audio: object) -> np.ndarray:
        """Return the spectrogram as an array.

        Args:
            audio: Spectrogram of an example.
        """
        array = to_host(audio)
        if array.ndim < 2 or array.dtype.kind != "f":
            raise ShapeError(
                f"{type(self).__name__}: expected a spectrogram of floating-point numbers, "
                f"(..., frames, features), not {array.dtype} of shape {array.shape}"
            )
        return array


class _Mask(SpectrogramAugmentation):
    axis: int

    def __init__(
        self,
        width: int,
        count: int = 1,
        fraction: float = 1.0,
        value: float = 0.0,
        probability: float = 1.0,
    ) -> None:
        super().__init__(probability)
        name = type(self).__name__
        self.width = check_integer(name, "width", width, 0)
        self.count = check_integer(name, "count", count, 0)
        self.fraction = check_fraction(name, "fraction", fraction)
        self.value = float(value)

    def apply(self, samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the spectrogram with its masks."""
        masked = samples.copy()
        length = samples.shape[self.axis]
        most = min(self.width, int(self.fraction * length))
        view = np.moveaxis(masked, self.axis, -1)
        for _ in range(self.count):
            width = int(rng.integers(0, most, endpoint=True))
            start = int(rng.integers(0, length - width, endpoint=True))
            view[..., start : start + width] = self.value
        return masked


class TimeMask(_Mask):
    """Masks over random consecutive frames of a spectrogram, (..., frames, features).

    Args:
        width: Largest number of frames of a mask; each mask draws its width from 0 to `width`.
        count: Number of masks. Default: 1.
        fraction: Largest fraction of all frames that one mask may cover. Default: 1.
        value: Value of masked elements. Default: 0.
        probability: Probability of transforming an example. Default: 1.
    """

    axis = -2


class FrequencyMask(_Mask):
    """Masks over random consecutive features of a spectrogram, (..., frames, features).

    Args:
        width: Largest number of features of a mask; each mask draws its width from 0 to `width`.
        count: Number of masks. Default: 1.
        fraction: Largest fraction of all features that one mask may cover. Default: 1.
        value: Value of masked elements. Default: 0.
        probability: Probability of transforming an example. Default: 1.
    """

    axis = -1


class SpecAugment(SpectrogramAugmentation):
    """Frequency masks and time masks of a spectrogram, (..., frames, features).

    The defaults are the policy "LibriSpeech double" without time warping.

    Args:
        frequency_width: Largest number of features of a mask. Default: 27.
        frequency_count: Number of frequency masks. Default: 2.
        time_width: Largest number of frames of a mask. Default: 100.
        time_count: Number of time masks. Default: 2.
        fraction: Largest fraction of all frames that one time mask may cover. Default: 1.
        value: Value of masked elements. Default: 0.

    Reference: Park et al., "SpecAugment", 2019.
    """

    def __init__(
        self,
        frequency_width: int = 27,
        frequency_count: int = 2,
        time_width: int = 100,
        time_count: int = 2,
        fraction: float = 1.0,
        value: float = 0.0,
    ) -> None:
        super().__init__()
        self.frequency = FrequencyMask(frequency_width, frequency_count, value=value)
        self.time = TimeMask(time_width, time_count, fraction, value)

    def apply(self, samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the spectrogram with its masks."""
        return self.time.apply(self.frequency.apply(samples, rng), rng)
