"""Augmentations of sequences (time, ...)."""

from __future__ import annotations

import numpy as np

from ember_ml.configs.fields import Fraction, Probability
from ember_ml.data.augmentation.base import Augmentation
from ember_ml.registry import register


@register("augmentations/time_shift")
class TimeShift(Augmentation):
    """Sequence rolled in time by a random number of positions.

    Args:
        fraction: Largest shift to either side, as a fraction of the length. Default: 0.1.
        probability: Probability of transforming an example. Default: 1.
    """

    axes = 1

    def __init__(self, fraction: Fraction = 0.1, probability: Probability = 1.0) -> None:
        super().__init__(probability)
        self.fraction = fraction

    def apply(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the rolled sequence."""
        most = int(self.fraction * len(x))
        return np.roll(x, int(rng.integers(-most, most, endpoint=True)), axis=0)


@register("augmentations/time_mask")
class TimeMask(Augmentation):
    """Sequence with a random span set to zero.

    Args:
        fraction: Largest length of the span, as a fraction of the length. Default: 0.3.
        probability: Probability of transforming an example. Default: 1.
    """

    axes = 1

    def __init__(self, fraction: Fraction = 0.3, probability: Probability = 1.0) -> None:
        super().__init__(probability)
        self.fraction = fraction

    def apply(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the sequence without the span."""
        span = int(rng.integers(0, int(self.fraction * len(x)), endpoint=True))
        start = int(rng.integers(0, len(x) - span, endpoint=True))
        masked = x.copy()
        masked[start : start + span] = 0
        return masked


@register("augmentations/crop")
class Crop(Augmentation):
    """Random part of a sequence, stretched to the full length by linear interpolation.

    Args:
        fraction: Smallest length of the part, as a fraction of the length. Default: 0.8.
        probability: Probability of transforming an example. Default: 1.
    """

    axes = 1

    def __init__(self, fraction: Fraction = 0.8, probability: Probability = 1.0) -> None:
        super().__init__(probability)
        self.fraction = fraction

    def apply(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the stretched part."""
        last = len(x) - 1
        width = rng.uniform(self.fraction, 1.0) * last
        start = rng.uniform(0.0, last - width)
        places = start + np.linspace(0.0, width, len(x))
        low = np.minimum(places.astype(np.int64), max(0, last - 1))
        share = (places - low).reshape(-1, *([1] * (x.ndim - 1)))
        return (1 - share) * x[low] + share * x[np.minimum(low + 1, last)]
