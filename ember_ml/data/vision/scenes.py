"""Images with their boxes and masks, and the geometry that they share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data.vision.pixels import check_image

Fill: TypeAlias = float
PadMode: TypeAlias = Literal["constant", "edge", "reflect"]


@dataclasses.dataclass(frozen=True)
class Scene:
    """An image with the boxes and masks that are transformed with it.

    Args:
        image: Array (height, width, channels).
        boxes: Corners (left, top, right, bottom) in pixels, (boxes, 4). None: there are none.
        masks: Mask (height, width), or masks (masks, height, width). None: there are none.
    """

    image: np.ndarray
    boxes: np.ndarray | None = None
    masks: np.ndarray | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the image."""
        return self.image.shape[0], self.image.shape[1]

    def with_image(self, image: np.ndarray) -> Scene:
        """Return the scene with other pixels at the same places.

        Args:
            image: The new image.
        """
        return dataclasses.replace(self, image=image)

    def crop(self, top: int, left: int, height: int, width: int) -> Scene:
        """Return a part of the scene; boxes are clipped to it.

        Args:
            top: First row.
            left: First column.
            height: Number of rows.
            width: Number of columns.
        """
        rows, columns = slice(top, top + height), slice(left, left + width)
        image = self.image[rows, columns]
        masks = None if self.masks is None else self.masks[..., rows, columns]
        return Scene(image, self._moved(-left, -top, (height, width)), masks)

    def pad(
        self,
        rows: tuple[int, int],
        columns: tuple[int, int],
        fill: Fill = 0,
        mask_fill: Fill = 0,
        mode: PadMode = "constant",
    ) -> Scene:
        """Return the scene with a border.

        Args:
            rows: Number of rows above and below.
            columns: Number of columns to the left and to the right.
            fill: Value of the border of the image, if `mode` is "constant".
            mask_fill: Value of the border of the masks, if `mode` is "constant".
            mode: "constant", "edge" or "reflect".
        """
        if not any((*rows, *columns)):
            return self

        def padded(array: np.ndarray, value: Fill, axes: list[tuple[int, int]]) -> np.ndarray:
            if mode == "constant":
                return np.pad(array, axes, constant_values=array.dtype.type(value))
            return np.pad(array, axes, mode)

        image = padded(self.image, fill, [rows, columns, (0, 0)])
        masks = self.masks
        if masks is not None:
            masks = padded(masks, mask_fill, [(0, 0)] * (masks.ndim - 2) + [rows, columns])
        return Scene(image, self._moved(columns[0], rows[0], image.shape[:2]), masks)

    def _moved(self, right: int, down: int, size: tuple[int, ...]) -> np.ndarray | None:
        """Return the boxes moved by (right, down), and clipped to an image of the size."""
        if self.boxes is None:
            return None
        height, width = size
        moved = self.boxes + np.array([right, down, right, down], self.boxes.dtype)
        return _clipped(moved, (height, width))

    def flip(self, axis: Literal["horizontal", "vertical"]) -> Scene:
        """Return the mirrored scene.

        Args:
            axis: "horizontal" exchanges left and right, "vertical" top and bottom.
        """
        height, width = self.size
        first, length = (0, width) if axis == "horizontal" else (1, height)
        boxes = self.boxes
        if boxes is not None:
            mirrored = boxes.copy()
            mirrored[:, first] = length - boxes[:, first + 2]
            mirrored[:, first + 2] = length - boxes[:, first]
            boxes = mirrored
        image = self.image[:, ::-1] if axis == "horizontal" else self.image[::-1]
        masks = self.masks
        if masks is not None:
            masks = masks[..., ::-1] if axis == "horizontal" else masks[..., ::-1, :]
        return Scene(image, boxes, masks)

    def resize(
        self, size: tuple[int, int], resample: Callable[[np.ndarray, tuple[int, int]], np.ndarray]
    ) -> Scene:
        """Return the scene in another size; masks are resized to the nearest pixel.

        Args:
            size: New height and width.
            resample: Function that resizes the image.
        """
        if size == self.size:
            return self
        boxes, masks = self.boxes, self.masks
        if boxes is not None:
            down, right = size[0] / self.size[0], size[1] / self.size[1]
            boxes = _clipped(boxes * np.array([right, down, right, down], boxes.dtype), size)
        if masks is not None:
            masks = nearest(masks, size)
        return Scene(resample(self.image, size), boxes, masks)


def _clipped(boxes: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return boxes inside of an image of a size; products round to slightly more than its width."""
    height, width = size
    return np.clip(boxes, 0, np.array([width, height, width, height], boxes.dtype))


def nearest(array: np.ndarray, size: tuple[int, int], first: int = -2) -> np.ndarray:
    """Return an array with two of its axes resized to the nearest element.

    Args:
        array: Array of any dtype.
        size: New lengths of the two axes.
        first: First of the two axes. Default: -2.
    """
    for axis, count in enumerate(size, first):
        length = array.shape[axis]
        places = (2 * np.arange(count) + 1) * length // (2 * count)  # exact at ties
        array = np.take(array, places, axis=axis)
    return array


def check_scene(where: str, image: object, boxes: object, masks: object) -> Scene:
    """Return the scene of an image; raise an error if the parts do not fit together.

    Args:
        where: Name of the class in the error.
        image: Array (height, width, channels).
        boxes: Array (boxes, 4), or None.
        masks: Array (height, width) or (masks, height, width), or None.
    """
    pixels = check_image(where, image)
    return Scene(
        pixels,
        None if boxes is None else _check_boxes(where, boxes),
        None if masks is None else _check_masks(where, masks, pixels.shape[:2]),
    )


def _check_boxes(where: str, boxes: object) -> np.ndarray:
    if not isinstance(boxes, np.ndarray) or boxes.dtype.kind not in "iuf":
        kind = boxes.dtype if isinstance(boxes, np.ndarray) else type(boxes).__name__
        raise ArgumentTypeError(f"{where}: boxes must be a NumPy array of numbers, not {kind}")
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(
            f"{where}: boxes must have shape (boxes, 4): left, top, right and bottom, not "
            f"{boxes.shape}"
        )
    corners = boxes if boxes.dtype.kind == "f" else boxes.astype(np.float32)
    ordered = (corners[:, :2] <= corners[:, 2:]).all(axis=1) & np.isfinite(corners).all(axis=1)
    if not ordered.all():
        bad = int(np.argmin(ordered))
        raise ArgumentError(
            f"{where}: box {bad} must be finite with left <= right and top <= bottom, not "
            f"{corners[bad].tolist()}"
        )
    return corners


def _check_masks(where: str, masks: object, size: tuple[int, ...]) -> np.ndarray:
    if not isinstance(masks, np.ndarray) or masks.dtype.kind not in "biuf":
        kind = masks.dtype if isinstance(masks, np.ndarray) else type(masks).__name__
        raise ArgumentTypeError(f"{where}: masks must be a NumPy array, not {kind}")
    if masks.ndim not in (2, 3) or masks.shape[-2:] != size:
        raise ShapeError(
            f"{where}: masks must have shape (height, width) or (masks, height, width) of the "
            f"image, {size}, not {masks.shape}"
        )
    return masks
