"""Crops, borders and reflections of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.data.errors import check_integer
from ember_ml.data.vision.pixels import check_size
from ember_ml.data.vision.ranges import check_probability
from ember_ml.data.vision.scenes import PadMode, Scene
from ember_ml.data.vision.transforms import Transform

Padding: TypeAlias = int | Sequence[int] | Sequence[Sequence[int]]
"""Pixels on all sides, (rows, columns), or ((top, bottom), (left, right))."""
Sides: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


class CenterCrop(Transform):
    """Central part of the image.

    Args:
        size: (height, width) of the part, or one integer for both. The image must not be smaller.

    Example:
        >>> import numpy as np
        >>> from ember_ml.data import vision
        >>> vision.CenterCrop((2, 4))(np.zeros((8, 8, 3), np.uint8)).shape
        (2, 4, 3)
    """

    def __init__(self, size: int | tuple[int, int]) -> None:
        self.size = check_size("CenterCrop", size)

    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return the central part of the scene."""
        down, right = _slack(self, scene.size, self.size)
        return scene.crop(down // 2, right // 2, *self.size)


class Pad(Transform):
    """Image with a border.

    Args:
        padding: Pixels on all sides, (rows, columns), or ((top, bottom), (left, right)).
        fill: Value of the border of the image, if `mode` is "constant". Default: 0.
        mask_fill: Value of the border of the masks, if `mode` is "constant". Default: 0.
        mode: "constant", "edge" (repeats the outermost pixels) or "reflect". Default: "constant".

    Example:
        >>> import numpy as np
        >>> from ember_ml.data import vision
        >>> vision.Pad((1, 2))(np.zeros((8, 8, 3), np.uint8)).shape
        (10, 12, 3)
    """

    def __init__(
        self,
        padding: Padding,
        fill: float = 0,
        mask_fill: float = 0,
        mode: PadMode = "constant",
    ) -> None:
        name = type(self).__name__
        if mode not in ("constant", "edge", "reflect"):
            raise ArgumentError(
                f"{name}: mode must be 'constant', 'edge' or 'reflect', not {mode!r}"
            )
        self.padding = _sides(name, padding)
        self.fill = fill
        self.mask_fill = mask_fill
        self.mode = mode

    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return the scene with a border."""
        return scene.pad(*self.padding, self.fill, self.mask_fill, self.mode)


class RandomCrop(Pad):
    """Random part of fixed size.

    Args:
        size: (height, width) of the part, or one integer for both. The image must not be smaller,
            including the padding.
        padding: Border that is added first: pixels on all sides, (rows, columns), or ((top,
            bottom), (left, right)). Default: 0.
        fill: Value of the border of the image, if `mode` is "constant". Default: 0.
        mask_fill: Value of the border of the masks, if `mode` is "constant". Default: 0.
        mode: "constant", "edge" (repeats the outermost pixels) or "reflect". Default: "constant".
    """

    is_random = True

    def __init__(
        self,
        size: int | tuple[int, int],
        padding: Padding = 0,
        fill: float = 0,
        mask_fill: float = 0,
        mode: PadMode = "constant",
    ) -> None:
        super().__init__(padding, fill, mask_fill, mode)
        self.size = check_size("RandomCrop", size)

    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return a random part of the scene."""
        scene = super().apply(scene, rng)
        down, right = _slack(self, scene.size, self.size)
        top = int(rng.integers(0, down, endpoint=True))
        left = int(rng.integers(0, right, endpoint=True))
        return scene.crop(top, left, *self.size)


class RandomFlip(Transform):
    """Image that is mirrored with some probability.

    Args:
        probability: Probability of mirroring. Default: 0.5.
        axis: "horizontal" exchanges left and right, "vertical" top and bottom. Default:
            "horizontal".
    """

    is_random = True

    def __init__(
        self, probability: float = 0.5, axis: Literal["horizontal", "vertical"] = "horizontal"
    ) -> None:
        if axis not in ("horizontal", "vertical"):
            raise ArgumentError(
                f"RandomFlip: axis must be 'horizontal' or 'vertical', not {axis!r}"
            )
        self.probability = check_probability("RandomFlip", probability)
        self.axis = axis

    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return the scene, mirrored or not."""
        return scene.flip(self.axis) if rng.random() < self.probability else scene


def _slack(transform: Transform, size: tuple[int, int], part: tuple[int, int]) -> tuple[int, int]:
    """Return how many rows and columns are left over by a part."""
    if size[0] < part[0] or size[1] < part[1]:
        raise ShapeError(
            f"{type(transform).__name__}: an image of {size[0]} x {size[1]} (height x width) is "
            f"smaller than the crop of {part[0]} x {part[1]}; use Resize or Pad before"
        )
    return size[0] - part[0], size[1] - part[1]


def _sides(where: str, padding: object) -> Sides:
    parts = padding if isinstance(padding, (tuple, list)) else (padding, padding)
    pairs = [part if isinstance(part, (tuple, list)) else (part, part) for part in parts]
    if len(pairs) != 2 or any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            f"{where}: padding must be an integer, (rows, columns) or ((top, bottom), (left, "
            f"right)), not {padding!r:.60}"
        )
    (top, bottom), (left, right) = (
        [check_integer(where, "padding", side, 0) for side in pair] for pair in pairs
    )
    return (top, bottom), (left, right)
