"""Patches of images, for transformers."""

from __future__ import annotations

import numpy as np

from ember_ml._core.errors import ShapeError
from ember_ml.data.vision.pixels import check_image, check_size
from ember_ml.data.vision.scenes import Scene
from ember_ml.data.vision.transforms import Transform


def patches(image: np.ndarray, size: int | tuple[int, int]) -> np.ndarray:
    """Return the patches of an image, row by row: (patches, height * width * channels of a patch).

    Args:
        image: Array (height, width, channels); height and width divisible by those of a patch.
        size: (height, width) of a patch, or one integer for both.

    Example:
        >>> import numpy as np
        >>> from ember_ml.data import vision
        >>> vision.patches(np.arange(8, dtype=np.uint8).reshape(2, 4, 1), 2).tolist()
        [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    pixels = check_image("patches", image)
    rows, columns = check_size("patches", size)
    height, width, channels = pixels.shape
    if height % rows or width % columns:
        raise ShapeError(
            f"patches: an image of {height} x {width} (height x width) is not divisible into "
            f"patches of {rows} x {columns}; use Resize, Pad or CenterCrop before"
        )
    grid = pixels.reshape(height // rows, rows, width // columns, columns, channels)
    return grid.swapaxes(1, 2).reshape(-1, rows * columns * channels)


class Patches(Transform):
    """Sequence of the patches of an image, row by row; the last transform of a `Compose`.

    The result is (patches, height * width * channels of a patch). Boxes and masks are unchanged.

    Args:
        size: (height, width) of a patch, or one integer for both. The height and width of the image
            must be divisible by those of a patch.

    Reference: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021.
    """

    def __init__(self, size: int | tuple[int, int]) -> None:
        self.size = check_size("Patches", size)

    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return the scene with patches instead of the image."""
        return scene.with_image(patches(scene.image, self.size))
