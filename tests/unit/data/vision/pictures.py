"""Pictures to test with."""

from __future__ import annotations

import functools

import numpy as np


@functools.cache
def _photo() -> np.ndarray:
    from sklearn.datasets import load_sample_image

    return load_sample_image("china.jpg")


def photo(height: int = 60, width: int = 80) -> np.ndarray:
    """Return a part of a photograph, uint8 (height, width, 3)."""
    return _photo()[100 : 100 + height, 200 : 200 + width].copy()


def gradient(height: int = 6, width: int = 8, channels: int = 3) -> np.ndarray:
    """Return an image with a different value in every pixel."""
    return np.arange(height * width * channels, dtype=np.uint8).reshape(height, width, channels)
