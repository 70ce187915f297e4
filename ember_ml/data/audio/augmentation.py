"""Random transforms of samples: `transform(example, rng)`, deterministic given the generator."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data.audio.length import fitted
from ember_ml.data.audio.resampling import resample
from ember_ml.data.audio.samples import check_fraction, check_range, check_samples
from ember_ml.data.conversion import Pytree
from ember_ml.data.errors import check_integer
from ember_ml.data.random import RandomTransform

Range: TypeAlias = tuple[float, float] | float


class Augmentation(abc.ABC):
    """Random transform of the audio of an example: `transform(example, rng)`.

    An example is an array; a tuple or list whose first part is the array; or a dict with the array
    under "audio". Other parts, such as a label, are unchanged. Subclasses define `apply`.

    Args:
        probability: Probability of transforming an example. Default: 1.
    """

    def __init__(self, probability: float = 1.0) -> None:
        self.probability = check_fraction(type(self).__name__, "probability", probability)

    def __call__(self, example: Pytree, rng: np.random.Generator) -> Pytree:
        """Return the example with its audio transformed.

        Args:
            example: Array, (array, ...) or {"audio": array, ...}.
            rng: Source of all randomness.
        """
        if not isinstance(rng, np.random.Generator):
            raise ArgumentTypeError(
                f"{type(self).__name__}: rng must be a numpy.random.Generator, not {rng!r:.60}; "
                "use dataset.map(transform, seed=...)"
            )
        if isinstance(example, dict):
            if "audio" not in example:
                raise ArgumentError(
                    f"{type(self).__name__}: the example must have a key 'audio'; it has "
                    f"{', '.join(map(repr, example))}"
                )
            return {**example, "audio": self._maybe(example["audio"], rng)}
        if isinstance(example, (tuple, list)) and example and not np.isscalar(example[0]):
            return tree.sequence_like(type(example), [self._maybe(example[0], rng), *example[1:]])
        return self._maybe(example, rng)

    def _maybe(self, audio: object, rng: np.random.Generator) -> np.ndarray:
        samples = self.check(audio)
        if self.probability < 1.0 and rng.random() >= self.probability:
            return samples
        return self.apply(samples, rng).astype(samples.dtype, copy=False)

    def check(self, audio: object) -> np.ndarray:
        """Return the audio as an array; raise an error if the transform cannot take it.

        Args:
            audio: Samples of an example.
        """
        samples = check_samples(type(self).__name__, audio)
        if not samples.size:
            raise ArgumentError(f"{type(self).__name__}: the example has no samples")
        return samples

    @abc.abstractmethod
    def apply(self, samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the transformed samples; the argument must not be changed.

        Args:
            samples: (samples,) or (channels, samples).
            rng: Source of all randomness.
        """


class Compose:
    """Transforms applied one after the other.

    Args:
        transforms: Functions `transform(example, rng)`.

    Example:
        >>> from ember_ml.data import audio, random_stream
        >>> augment = audio.Compose([audio.Gain((-6.0, 6.0)), audio.TimeShift(0.1)])
        >>> samples, label = augment((ops.ones(100).numpy(), 3), random_stream(7, 0))
        >>> samples.shape, label
        ((100,), 3)
    """

    def __init__(self, transforms: Sequence[RandomTransform]) -> None:
        for transform in transforms:
            if not callable(transform):
                raise ArgumentTypeError(f"Compose: {transform!r:.60} is not a function")
        self.transforms = list(transforms)

    def __call__(self, example: Pytree, rng: np.random.Generator) -> Pytree:
        """Return the example after all transforms.

        Args:
            example: Example that the first transform takes.
            rng: Source of all randomness.
        """
        for transform in self.transforms:
            example = transform(example, rng)
        return example


class Gain(Augmentation):
    """Random volume.

    Args:
        decibels: Range of the gain, (low, high). Default: (-6, 6).
        probability: Probability of transforming an example. Default: 1.
    """

    def __init__(self, decibels: Range = (-6.0, 6.0), probability: float = 1.0) -> None:
        super().__init__(probability)
        self.decibels = check_range("Gain", "decibels", decibels)

    def apply(self, samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the samples times the gain."""
        return samples * samples.dtype.type(10.0 ** (rng.uniform(*self.decibels) / 20.0))


class AddNoise(Augmentation):
    """White Gaussian noise at a random signal-to-noise ratio.

    The ratio is exact: the noise is scaled by its own power. Silence stays silent.

    Args:
        snr: Range of the signal-to-noise ratio in decibels, (low, high). Default: (10, 30).
        probability: Probability of transforming an example. Default: 1.
    """

    def __init__(self, snr: Range = (10.0, 30.0), probability: float = 1.0) -> None:
        super().__init__(probability)
        self.snr = check_range("AddNoise", "snr", snr)

    def apply(self, samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the samples with noise."""
        ratio = 10.0 ** (rng.uniform(*self.snr) / 10.0)
        noise = rng.standard_normal(samples.shape, np.float32)
        power = np.mean(np.square(samples, dtype=np.float64))
        scale = np.sqrt(power / (ratio * np.mean(np.square(noise, dtype=np.float64))))
        return samples + noise * samples.dtype.type(scale)


class TimeShift(Augmentation):
    """Random shift in time; zeros, or the other end of the signal, fill the gap.

    Args:
        fraction: Largest shift to either side, as a fraction of the length, in [0, 1].
            Default: 0.1.
        wrap: Whether samples that leave at one end enter at the other. Default: False.
        probability: Probability of transforming an example. Default: 1.
    """

    def __init__(self, fraction: float = 0.1, wrap: bool = False, probability: float = 1.0) -> None:
        super().__init__(probability)
        self.fraction = check_fraction("TimeShift", "fraction", fraction)
        self.wrap = wrap

    def apply(self, samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the shifted samples."""
        most = int(self.fraction * samples.shape[-1])
        shift = int(rng.integers(-most, most, endpoint=True))
        shifted = np.roll(samples, shift, axis=-1)
        if not self.wrap and shift > 0:
            shifted[..., :shift] = 0
        elif not self.wrap and shift < 0:
            shifted[..., shift:] = 0
        return shifted


class Speed(Augmentation):
    """Random speed by resampling: the length is divided by the speed, the pitch times the speed.

    Args:
        factor: Range of the speed, (low, high), rounded to 1/1000. Default: (0.9, 1.1).
        probability: Probability of transforming an example. Default: 1.
    """

    def __init__(self, factor: Range = (0.9, 1.1), probability: float = 1.0) -> None:
        super().__init__(probability)
        self.factor = check_range("Speed", "factor", factor, 0.01)

    def apply(self, samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the faster or slower samples."""
        return resample(samples, round(1000 * rng.uniform(*self.factor)), 1000)


class RandomCrop(Augmentation):
    """Random part of fixed length; a shorter signal is padded with zeros at a random position.

    Args:
        length: Number of samples of the result.
    """

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = check_integer("RandomCrop", "length", length, 1)

    def apply(self, samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the part."""
        slack = abs(samples.shape[-1] - self.length)
        return fitted(samples, self.length, int(rng.integers(0, slack, endpoint=True)))
