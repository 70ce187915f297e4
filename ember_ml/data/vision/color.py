"""Values of pixels: floating point, normalization, color jitter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data.vision.pixels import LARGEST, restore_dtype
from ember_ml.data.vision.ranges import check_range
from ember_ml.data.vision.scenes import Scene
from ember_ml.data.vision.transforms import Transform

Strength: TypeAlias = float | tuple[float, float]
LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""Weights of red, green and blue in the brightness of a pixel (ITU-R BT.601)."""


class ToFloat(Transform):
    """Image as float32: integers are divided by the largest value of their dtype.

    Example:
        >>> import numpy as np
        >>> from ember_ml.data import vision
        >>> vision.ToFloat()(np.array([[[0, 51, 255]]], np.uint8)).tolist()
        [[[0.0, 0.20000000298023224, 1.0]]]
    """

    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return the scene with floating-point pixels."""
        return scene.with_image(_as_float(scene.image))


class Normalize(Transform):
    """Floating-point image with a mean subtracted, divided by a standard deviation.

    Args:
        mean: Mean of each channel, or one number for all.
        std: Standard deviation of each channel, or one number for all; positive.

    Example:
        >>> import numpy as np
        >>> from ember_ml.data import vision
        >>> scaled = vision.Compose([vision.ToFloat(), vision.Normalize(0.5, 0.5)])
        >>> scaled(np.array([[[0, 255]]], np.uint8)).tolist()
        [[[-1.0, 1.0]]]
    """

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        self.mean = _channels("mean", mean)
        self.std = _channels("std", std)
        if min(self.std) <= 0:
            raise ArgumentError(f"Normalize: std must be positive, not {std!r}")

    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return the scene with normalized pixels."""
        image = scene.image
        if image.dtype.kind != "f":
            raise ArgumentTypeError(
                f"Normalize: expected floating-point pixels, not {image.dtype}; use ToFloat before"
            )
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, image.shape[-1]):
                raise ShapeError(
                    f"Normalize: {name} has {len(values)} values, the image {image.shape[-1]} "
                    "channels"
                )
        mean, std = np.array(self.mean, image.dtype), np.array(self.std, image.dtype)
        return scene.with_image((image - mean) / std)


class ColorJitter(Transform):
    """Random brightness, contrast, saturation and hue, in random order.

    Each strength s is a factor drawn from [max(0, 1 - s), 1 + s], or from a range (low, high).
    A factor of 1 changes nothing. The image has 1 channel, where only brightness and contrast have
    an effect, or 3 (RGB); floating-point pixels are in [0, 1].

    Args:
        brightness: Strength of the brightness: the factor of all pixels. Default: 0.
        contrast: Strength of the contrast: the factor of the distance from the mean gray value.
            Default: 0.
        saturation: Strength of the saturation: the factor of the distance from the gray image.
            Default: 0.
        hue: Largest rotation of the hue to either side, as a fraction of the color circle, in
            [0, 0.5]; or a range (low, high). Default: 0.
    """

    is_random = True

    def __init__(
        self,
        brightness: Strength = 0.0,
        contrast: Strength = 0.0,
        saturation: Strength = 0.0,
        hue: Strength = 0.0,
    ) -> None:
        self.brightness = _factors("brightness", brightness)
        self.contrast = _factors("contrast", contrast)
        self.saturation = _factors("saturation", saturation)
        if not isinstance(hue, (tuple, list)):
            _, most = check_range("ColorJitter", "hue", (0.0, hue), 0.0, 0.5)
            hue = (-most, most)
        self.hue = check_range("ColorJitter", "hue", hue, -0.5, 0.5)

    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return the scene with other colors."""
        image = scene.image
        if image.shape[-1] not in (1, 3):
            raise ShapeError(
                f"ColorJitter: expected 1 or 3 channels, not an image of shape {image.shape}"
            )
        steps = [
            (brightness, rng.uniform(*self.brightness), 1.0),
            (contrast, rng.uniform(*self.contrast), 1.0),
            (saturation, rng.uniform(*self.saturation), 1.0),
            (rotate_hue, rng.uniform(*self.hue), 0.0),
        ]
        order = rng.permutation(len(steps))
        if all(amount == identity for _, amount, identity in steps):
            return scene
        pixels = _as_float(image)
        for step in order:
            change, amount, identity = steps[step]
            if amount != identity:
                pixels = np.clip(change(pixels, amount), 0.0, 1.0)
        scale = LARGEST.get(image.dtype.str[1:], 1)
        return scene.with_image(restore_dtype(pixels * np.float32(scale), image.dtype))


def brightness(pixels: np.ndarray, factor: float) -> np.ndarray:
    """Return the pixels times a factor.

    Args:
        pixels: float32 (height, width, channels) in [0, 1].
        factor: Factor; 0 is black.
    """
    return pixels * np.float32(factor)


def contrast(pixels: np.ndarray, factor: float) -> np.ndarray:
    """Return the pixels with their distance from the mean gray value times a factor.

    Args:
        pixels: float32 (height, width, channels) in [0, 1].
        factor: Factor; 0 is uniform gray.
    """
    mean = np.mean(_gray(pixels), dtype=np.float64).astype(np.float32)
    return mean + (pixels - mean) * np.float32(factor)


def saturation(pixels: np.ndarray, factor: float) -> np.ndarray:
    """Return the pixels with their distance from the gray image times a factor.

    Args:
        pixels: float32 (height, width, channels) in [0, 1].
        factor: Factor; 0 is the gray image.
    """
    gray = _gray(pixels)
    return gray + (pixels - gray) * np.float32(factor)


def rotate_hue(pixels: np.ndarray, turn: float) -> np.ndarray:
    """Return the pixels with another hue, and the same saturation and value (HSV).

    Args:
        pixels: float32 (height, width, channels) in [0, 1].
        turn: Rotation as a fraction of the color circle.
    """
    if pixels.shape[-1] == 1:
        return pixels
    red, green, blue = np.moveaxis(pixels, -1, 0)
    value = pixels.max(axis=-1)
    chroma = value - pixels.min(axis=-1)
    safe = np.where(chroma == 0, np.float32(1), chroma)
    sector = np.where(
        value == red,
        (green - blue) / safe,
        np.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    sector = sector + np.float32(6 * turn)
    offsets = np.array([5, 3, 1], np.float32)  # of red, green and blue on the color circle
    place = (sector[..., None] + offsets) % 6
    level = np.clip(np.minimum(place, 4 - place), 0, 1)
    return value[..., None] - chroma[..., None] * level


def _gray(pixels: np.ndarray) -> np.ndarray:
    return pixels if pixels.shape[-1] == 1 else (pixels @ LUMA)[..., None]


def _as_float(image: np.ndarray) -> np.ndarray:
    if image.dtype.kind == "f":
        return image.astype(np.float32, copy=False)
    return image / np.float32(LARGEST[image.dtype.str[1:]])


def _channels(name: str, value: object) -> tuple[float, ...]:
    try:
        values = tuple(value) if isinstance(value, Sequence | np.ndarray) else (value,)
        numbers = tuple(float(number) for number in values)
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or not np.isfinite(numbers).all():
        raise ArgumentTypeError(
            f"Normalize: {name} must be a finite number, or one for each channel, not {value!r:.60}"
        )
    return numbers


def _factors(name: str, strength: Strength) -> tuple[float, float]:
    if isinstance(strength, (tuple, list)):
        return check_range("ColorJitter", name, strength)
    _, high = check_range("ColorJitter", name, (0.0, strength))
    return max(0.0, 1.0 - high), 1.0 + high
