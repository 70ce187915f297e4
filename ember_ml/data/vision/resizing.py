"""Resizing of images."""

from __future__ import annotations

import functools
import math
from typing import Literal, TypeAlias

import numpy as np

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.requirements import import_optional
from ember_ml.data.vision.pixels import check_image, check_size, restore_dtype
from ember_ml.data.vision.ranges import check_range
from ember_ml.data.vision.scenes import Scene, nearest
from ember_ml.data.vision.transforms import Transform

Interpolation: TypeAlias = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos", "box", "hamming")
WITHOUT_ANTIALIAS = ("nearest", "bilinear")


def resize(
    image: np.ndarray,
    size: int | tuple[int, int],
    *,
    antialias: bool = True,
    interpolation: Interpolation = "bilinear",
) -> np.ndarray:
    """Return an image in another size; every channel is resized by itself.

    Args:
        image: uint8, uint16 or floating-point array (height, width, channels).
        size: New (height, width), or one integer for both.
        antialias: Whether the filter covers all pixels that a new one stands for, as Pillow does.
            Without it, shrinking uses only the neighbors of a point, as OpenCV does. Default: True.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming"; "nearest" or
            "bilinear" without antialiasing. Default: "bilinear".

    Example:
        >>> import numpy as np
        >>> from ember_ml.data import vision
        >>> vision.resize(np.array([[[0], [100], [200], [40]]], np.uint8), (1, 2)).tolist()
        [[[71], [117]]]
    """
    _check_interpolation("resize", antialias, interpolation)
    pixels = check_image("resize", image)
    return _resample(antialias, interpolation, pixels, check_size("resize", size))


class Resize(Transform):
    """Image in another size.

    Args:
        size: New (height, width); or the new length of the shorter side, and the aspect ratio stays
            the same.
        antialias: Whether the filter covers all pixels that a new one stands for, as Pillow does.
            Without it, shrinking uses only the neighbors of a point, as OpenCV does. Default: True.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming"; "nearest" or
            "bilinear" without antialiasing. Masks always use "nearest". Default: "bilinear".

    Example:
        >>> import numpy as np
        >>> from ember_ml.data import vision
        >>> vision.Resize(8)(np.zeros((16, 32, 3), np.uint8)).shape
        (8, 16, 3)
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        antialias: bool = True,
        interpolation: Interpolation = "bilinear",
    ) -> None:
        _check_interpolation("Resize", antialias, interpolation)
        check_size("Resize", size)
        self.size = tuple(size) if isinstance(size, (tuple, list)) else size
        self.antialias = antialias
        self.interpolation = interpolation

    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return the scene in the new size."""
        return scene.resize(self._target(scene.size), self._resample)

    @property
    def _resample(self) -> functools.partial[np.ndarray]:
        return functools.partial(_resample, self.antialias, self.interpolation)

    def _target(self, size: tuple[int, int]) -> tuple[int, int]:
        if isinstance(self.size, tuple):
            return check_size("Resize", self.size)
        height, width = size
        scale = self.size / min(size)
        return (
            self.size if height <= width else max(round(height * scale), 1),
            self.size if width <= height else max(round(width * scale), 1),
        )


class RandomResizedCrop(Resize):
    """Random part of the image with a random area and aspect ratio, in a fixed size.

    Args:
        size: New (height, width), or one integer for both.
        scale: Range of the part's area, as a fraction of that of the image. Default: (0.08, 1).
        ratio: Range of the part's width / height. Default: (3/4, 4/3).
        antialias: Whether to antialias, as in `Resize`. Default: True.
        interpolation: Interpolation, as in `Resize`. Default: "bilinear".

    Reference: Szegedy et al., "Going Deeper with Convolutions", 2015.
    """

    is_random = True

    def __init__(
        self,
        size: int | tuple[int, int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        antialias: bool = True,
        interpolation: Interpolation = "bilinear",
    ) -> None:
        super().__init__(check_size("RandomResizedCrop", size), antialias, interpolation)
        self.scale = check_range("RandomResizedCrop", "scale", scale, 1e-9, 1.0)
        self.ratio = check_range("RandomResizedCrop", "ratio", ratio, 1e-9)

    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return a random part of the scene in the new size."""
        height, width = self._part(scene.size, rng)
        top = int(rng.integers(0, scene.size[0] - height, endpoint=True))
        left = int(rng.integers(0, scene.size[1] - width, endpoint=True))
        return super().apply(scene.crop(top, left, height, width), rng)

    def _part(self, size: tuple[int, int], rng: np.random.Generator) -> tuple[int, int]:
        """Return height and width of the part: ten attempts, then the largest that fits."""
        log_ratio = np.log(self.ratio)
        for _ in range(10):
            area = rng.uniform(*self.scale) * size[0] * size[1]
            ratio = math.exp(rng.uniform(*log_ratio))
            height, width = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if 0 < height <= size[0] and 0 < width <= size[1]:
                return height, width
        ratio = min(max(size[1] / size[0], self.ratio[0]), self.ratio[1])
        height = min(size[0], max(round(size[1] / ratio), 1))
        return height, min(size[1], max(round(height * ratio), 1))


def _check_interpolation(where: str, antialias: object, interpolation: object) -> None:
    allowed = INTERPOLATIONS if antialias else WITHOUT_ANTIALIAS
    if interpolation not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ArgumentError(
            f"{where}: interpolation must be one of {names} with antialias={antialias!r}, not "
            f"{interpolation!r}"
        )


def _resample(
    antialias: bool, interpolation: str, image: np.ndarray, size: tuple[int, int]
) -> np.ndarray:
    if interpolation == "nearest":
        return nearest(image, size, first=0)
    if antialias:
        return _antialiased(image, size, interpolation)
    dtype = image.dtype if image.dtype == np.float64 else np.dtype(np.float32)
    x = convert_to_tensor(image[None].astype(dtype), backend="numpy")
    y = ops.interpolate(x, size, mode="linear", data_format="channels_last")
    return restore_dtype(y.numpy()[0], image.dtype)


def _antialiased(image: np.ndarray, size: tuple[int, int], interpolation: str) -> np.ndarray:
    pillow = import_optional("PIL.Image", "data.vision")
    resampling = pillow.Resampling[interpolation.upper()]

    def run(pixels: np.ndarray) -> np.ndarray:
        picture = pillow.fromarray(np.ascontiguousarray(pixels))
        return np.asarray(picture.resize((size[1], size[0]), resampling))

    if image.dtype == np.uint8 and image.shape[-1] == 3:
        return run(image)
    single = image if image.dtype == np.uint8 else image.astype(np.float32, copy=False)
    channels = [run(single[..., channel]) for channel in range(image.shape[-1])]
    return restore_dtype(np.stack(channels, axis=-1), image.dtype)
