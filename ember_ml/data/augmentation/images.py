"""Augmentations of images (height, width) or (height, width, channels)."""

from __future__ import annotations

import numpy as np

from ember_ml.configs.fields import Count, Fraction, Probability
from ember_ml.data.augmentation.base import Augmentation
from ember_ml.registry import register


@register("augmentations/shift")
class Shift(Augmentation):
    """Image moved by up to some pixels in each direction; zeros fill the border.

    Args:
        pixels: Largest shift. Default: 1.
        probability: Probability of transforming an example. Default: 1.

    Example:
        >>> import numpy as np
        >>> from ember_ml.data import augmentation, random_stream
        >>> augmentation.Shift(2)(np.ones((8, 8, 1)), random_stream(7, 0)).shape
        (8, 8, 1)
    """

    axes = 2

    def __init__(self, pixels: Count = 1, probability: Probability = 1.0) -> None:
        super().__init__(probability)
        self.pixels = pixels

    def apply(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the moved image."""
        down, right = (int(n) for n in rng.integers(-self.pixels, self.pixels, 2, endpoint=True))
        moved = np.zeros_like(x)
        rows, columns = (_overlap(n, by) for n, by in zip(x.shape, (down, right), strict=False))
        moved[rows[0], columns[0]] = x[rows[1], columns[1]]
        return moved


def _overlap(size: int, by: int) -> tuple[slice, slice]:
    """Return the target and the source positions of a shift."""
    by = max(-size, min(size, by))
    return slice(max(0, by), size + min(0, by)), slice(max(0, -by), size + min(0, -by))


@register("augmentations/erase")
class Erase(Augmentation):
    """Image with a random square set to zero (Cutout).

    Args:
        fraction: Side of the square, as a fraction of the shorter side. Default: 0.4.
        probability: Probability of transforming an example. Default: 1.
    """

    axes = 2

    def __init__(self, fraction: Fraction = 0.4, probability: Probability = 1.0) -> None:
        super().__init__(probability)
        self.fraction = fraction

    def apply(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the image without the square."""
        side = max(1, round(self.fraction * min(x.shape[:2])))
        top, left = (int(rng.integers(0, size - side, endpoint=True)) for size in x.shape[:2])
        erased = x.copy()
        erased[top : top + side, left : left + side] = 0
        return erased
