"""Augmentations of the values of vectors, images and sequences."""

from __future__ import annotations

import numpy as np

from ember_ml.configs.fields import Below1, NonNegative, Probability
from ember_ml.data.augmentation.base import Augmentation
from ember_ml.registry import register


@register("augmentations/jitter")
class Jitter(Augmentation):
    """Gaussian noise on every value.

    Args:
        std: Standard deviation of the noise. Default: 0.1.
        probability: Probability of transforming an example. Default: 1.
    """

    def __init__(self, std: NonNegative = 0.1, probability: Probability = 1.0) -> None:
        super().__init__(probability)
        self.std = std

    def apply(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the values with noise."""
        return x + self.std * rng.standard_normal(x.shape)


@register("augmentations/scale")
class Scale(Augmentation):
    """Random factor on all values of an example: `exp(std * z)` with a standard normal `z`.

    Args:
        std: Standard deviation of the factor's logarithm. Default: 0.1.
        probability: Probability of transforming an example. Default: 1.
    """

    def __init__(self, std: NonNegative = 0.1, probability: Probability = 1.0) -> None:
        super().__init__(probability)
        self.std = std

    def apply(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the scaled values."""
        return x * np.exp(self.std * rng.standard_normal())


@register("augmentations/drop")
class Drop(Augmentation):
    """Zeros in place of random values.

    Args:
        rate: Probability that a value becomes 0. Default: 0.1.
        probability: Probability of transforming an example. Default: 1.
    """

    def __init__(self, rate: Below1 = 0.1, probability: Probability = 1.0) -> None:
        super().__init__(probability)
        self.rate = rate

    def apply(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the values with zeros."""
        return np.where(rng.random(x.shape) < self.rate, 0, x)
