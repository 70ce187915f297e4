"""Transforms of images: `transform(example, rng)`, deterministic given the generator."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data.conversion import Pytree
from ember_ml.data.vision.pixels import check_image
from ember_ml.data.vision.scenes import Scene, check_scene

EmptyBoxes: TypeAlias = Literal["keep", "remove", "raise"]


class Transformed(NamedTuple):
    """Result of a transform that was called with boxes or masks."""

    image: np.ndarray
    """Array (height, width, channels)."""
    boxes: np.ndarray | None
    """Corners (left, top, right, bottom) of the boxes, (boxes, 4), clipped to the image."""
    masks: np.ndarray | None
    """Masks, of the height and width of the image."""
    kept: np.ndarray | None
    """Indices of these boxes among those that were passed."""


class Transform(abc.ABC):
    """Transform of an image, with its boxes and masks, or of an example.

    An example is an image; a tuple or list whose first part is the image; or a dict with "image"
    and optionally "boxes" and "masks". Other parts, such as a label, are unchanged. With
    `dataset.map(transform, seed=7)`, the generator depends only on (seed, epoch, index).

    Subclasses define `apply`, and `is_random` if they draw from the generator.
    """

    is_random: bool = False
    per_box: tuple[str, ...] = ()

    @abc.abstractmethod
    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return the transformed scene; the argument is not changed.

        Args:
            scene: Image, boxes and masks.
            rng: Source of all randomness.
        """

    def __call__(
        self,
        example: Pytree,
        rng: np.random.Generator | None = None,
        *,
        boxes: np.ndarray | None = None,
        masks: np.ndarray | None = None,
    ) -> Pytree:
        """Return the transformed example.

        Args:
            example: Image, (image, ...) or {"image": image, "boxes": ..., "masks": ..., ...}.
            rng: Source of all randomness; optional if nothing is random.
            boxes: Corners (left, top, right, bottom) in pixels, (boxes, 4), if the example is an
                image.
            masks: Mask (height, width), or masks (masks, height, width), if the example is an
                image.

        Returns:
            The example, or (image, boxes, masks, kept) if `boxes` or `masks` are given.
        """
        generator = self._generator(rng)
        if boxes is not None or masks is not None:
            return self._run(example, boxes, masks, generator)
        if isinstance(example, dict):
            return self._run_dict(example, generator)
        if isinstance(example, (tuple, list)) and example:
            image = self._run(example[0], None, None, generator).image
            return tree.sequence_like(type(example), [image, *example[1:]])
        return self._run(example, None, None, generator).image

    def _generator(self, rng: object) -> np.random.Generator:
        if isinstance(rng, np.random.Generator):
            return rng
        if rng is None and not self.is_random:
            return np.random.default_rng(0)  # not used
        raise ArgumentTypeError(
            f"{type(self).__name__}: rng must be a numpy.random.Generator, not {rng!r:.60}; use "
            "dataset.map(transform, seed=...)"
        )

    def _run(
        self, image: object, boxes: object, masks: object, rng: np.random.Generator
    ) -> Transformed:
        scene = self.apply(check_scene(type(self).__name__, image, boxes, masks), rng)
        arrays = [None if part is None else np.ascontiguousarray(part) for part in _parts(scene)]
        kept = None if scene.boxes is None else np.arange(len(scene.boxes))
        assert arrays[0] is not None
        return Transformed(arrays[0], arrays[1], arrays[2], kept)

    def _run_dict(self, example: dict[str, Pytree], rng: np.random.Generator) -> dict[str, Pytree]:
        if "image" not in example:
            raise ArgumentError(
                f"{type(self).__name__}: the example must have a key 'image'; it has "
                f"{', '.join(map(repr, example)) or 'none'}"
            )
        result = self._run(example["image"], example.get("boxes"), example.get("masks"), rng)
        parts = {"image": result.image, "boxes": result.boxes, "masks": result.masks}
        changed = {**example, **{name: part for name, part in parts.items() if name in example}}
        if result.kept is not None:
            for name in self.per_box:
                changed[name] = _selected(self, name, changed, len(example["boxes"]), result.kept)
        return changed

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self).__init__).parameters.values()
        shown = [
            f"{each.name}={getattr(self, each.name)!r}"
            for each in parameters
            if hasattr(self, each.name) and _differs(getattr(self, each.name), each.default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _selected(
    transform: Transform, name: str, example: dict[str, Pytree], count: int, kept: np.ndarray
) -> np.ndarray:
    """Return the rows of an entry that belong to the remaining boxes."""
    rows = np.asarray(example[name]) if name in example else None
    if rows is None or rows.ndim == 0 or len(rows) != count:
        problem = "is missing" if rows is None else f"has shape {rows.shape}"
        raise ArgumentError(
            f"{type(transform).__name__}: {name!r} must have a row for each of {count} boxes; it "
            f"{problem}"
        )
    return rows[kept]


def _parts(scene: Scene) -> tuple[np.ndarray | None, ...]:
    return scene.image, scene.boxes, scene.masks


def _differs(value: object, default: object) -> bool:
    return type(value) is not type(default) or value != default


class Compose(Transform):
    """Transforms applied one after the other.

    Args:
        transforms: The transforms, in order.
        empty_boxes: What to do with boxes that have no area left at the end: "keep" them, "remove"
            them, or "raise" an error. Default: "keep".
        per_box: Keys of a dict example whose entries have one row for each box, such as labels of
            boxes or instance masks. They are removed with their boxes. Default: none.

    Example:
        >>> import numpy as np
        >>> from ember_ml.data import random_stream, vision
        >>> augment = vision.Compose([vision.Resize((8, 8)), vision.RandomCrop(6)])
        >>> image, boxes = np.zeros((16, 16, 3), np.uint8), np.array([[0.0, 0.0, 16.0, 16.0]])
        >>> result = augment(image, boxes=boxes, rng=random_stream(7, 0))
        >>> result.image.shape, result.boxes.tolist()
        ((6, 6, 3), [[0.0, 0.0, 6.0, 6.0]])
        >>> image, label = augment((image, 3), random_stream(7, 0))
        >>> image.shape, label
        ((6, 6, 3), 3)
    """

    def __init__(
        self,
        transforms: Sequence[Transform],
        *,
        empty_boxes: EmptyBoxes = "keep",
        per_box: Sequence[str] = (),
    ) -> None:
        for transform in transforms:
            if not isinstance(transform, Transform):
                raise ArgumentTypeError(
                    f"Compose: {transform!r:.60} is not a transform of data.vision; apply other "
                    "functions with dataset.map"
                )
            if isinstance(transform, Compose) and transform.empty_boxes != "keep":
                raise ArgumentError(
                    f"Compose: pass empty_boxes={transform.empty_boxes!r} to the outer Compose"
                )
        if empty_boxes not in ("keep", "remove", "raise"):
            raise ArgumentError(
                f"Compose: empty_boxes must be 'keep', 'remove' or 'raise', not {empty_boxes!r}"
            )
        self.transforms = list(transforms)
        self.empty_boxes: EmptyBoxes = empty_boxes
        self.per_box = (per_box,) if isinstance(per_box, str) else tuple(per_box)

    @property
    def is_random(self) -> bool:  # type: ignore[override]
        """Whether any transform is random."""
        return any(transform.is_random for transform in self.transforms)

    def apply(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """Return the scene after all transforms.

        Args:
            scene: Image, boxes and masks.
            rng: Source of all randomness.
        """
        for transform in self.transforms:
            check_image(type(transform).__name__, scene.image)  # patches are not an image
            scene = transform.apply(scene, rng)
        return scene

    def _run(
        self, image: object, boxes: object, masks: object, rng: np.random.Generator
    ) -> Transformed:
        result = super()._run(image, boxes, masks, rng)
        if result.boxes is None or self.empty_boxes == "keep":
            return result
        full = (result.boxes[:, :2] < result.boxes[:, 2:]).all(axis=1)
        if self.empty_boxes == "raise" and not full.all():
            raise ArgumentError(
                f"Compose: box {int(np.argmin(full))} has no area left in the image; use "
                "empty_boxes='remove' or 'keep'"
            )
        return result._replace(boxes=result.boxes[full], kept=np.flatnonzero(full))
