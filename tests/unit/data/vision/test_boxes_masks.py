"""Boxes and masks move with the image, whatever the transforms are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, EmberError, ShapeError
from ember_ml.data import random_stream, vision

from .pictures import gradient, photo

GEOMETRIC = [
    vision.Resize((60, 44), interpolation="nearest"),
    vision.Resize(96, interpolation="nearest"),
    vision.CenterCrop((40, 36)),
    vision.Pad(((1, 5), (7, 2))),
    vision.RandomCrop((40, 48), padding=3),
    vision.RandomFlip(),
    vision.RandomFlip(axis="vertical"),
    vision.RandomResizedCrop((32, 40), scale=(0.5, 1.0), interpolation="nearest"),
]


def filled(size: tuple[int, ...], box: list[int]) -> np.ndarray:
    """Return a mask that is 1 inside of a box."""
    mask = np.zeros(size, np.uint8)
    left, top, right, bottom = box
    mask[top:bottom, left:right] = 1
    return mask


def extent(mask: np.ndarray) -> list[int]:
    """Return the box around the ones of a mask."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]


@settings(max_examples=60, deadline=None)
@example(chosen=[GEOMETRIC[4], GEOMETRIC[7]], index=16, corner=(14, 0), size=(30, 4))  # rounds up
@given(
    chosen=st.lists(st.sampled_from(GEOMETRIC), min_size=1, max_size=3),
    index=st.integers(0, 1000),
    corner=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    size=st.tuples(st.integers(4, 30), st.integers(4, 30)),
)
def test_image_box_and_mask_agree(
    chosen: list[vision.Transform],
    index: int,
    corner: tuple[int, int],
    size: tuple[int, int],
) -> None:
    """A rectangle is drawn as pixels, as a box and as a mask; they stay the same rectangle."""
    box = [*corner, corner[0] + size[0], corner[1] + size[1]]
    mask = filled((64, 64), box)
    try:
        result = vision.Compose(chosen)(
            mask[..., None], random_stream(1, index), boxes=np.array([box]), masks=mask
        )
    except ShapeError:  # a crop larger than what an earlier one left
        assume(False)
    np.testing.assert_array_equal(result.image[..., 0], result.masks)
    height, width = result.masks.shape
    (moved,) = result.boxes
    assert result.boxes.dtype == np.float32
    assert (moved >= 0).all()
    assert (moved <= [width, height, width, height]).all()
    if result.masks.any():
        # each resizing rounds by less than a pixel, which later ones can enlarge
        np.testing.assert_allclose(moved, extent(result.masks), atol=1.0 + 1.5 * len(chosen))
    else:
        assert (moved[2:] - moved[:2]).min() < 1.0 + 1.5 * len(chosen)


def test_boxes_by_hand() -> None:
    image, boxes = gradient(10, 20), np.array([[2, 1, 6, 5], [0, 0, 20, 10]])

    def moved(transform: vision.Transform) -> list[list[float]]:
        return transform(image, random_stream(0, 0), boxes=boxes).boxes.tolist()

    assert moved(vision.Resize((5, 40))) == [[4, 0.5, 12, 2.5], [0, 0, 40, 5]]
    assert moved(vision.CenterCrop((4, 10))) == [[0, 0, 1, 2], [0, 0, 10, 4]]
    assert moved(vision.Pad(((1, 2), (3, 4)))) == [[5, 2, 9, 6], [3, 1, 23, 11]]
    assert moved(vision.RandomFlip(1.0)) == [[14, 1, 18, 5], [0, 0, 20, 10]]
    assert moved(vision.RandomFlip(1.0, "vertical")) == [[2, 5, 6, 9], [0, 0, 20, 10]]
    assert moved(vision.ColorJitter(0.5)) == boxes.tolist()
    assert boxes.tolist() == [[2, 1, 6, 5], [0, 0, 20, 10]]


def test_masks_keep_their_values_and_dtype() -> None:
    image = photo(32, 32)
    for masks in (
        np.random.default_rng(0).integers(0, 200, (32, 32)).astype(np.uint8),
        np.random.default_rng(0).integers(0, 9000, (3, 32, 32)),
        np.random.default_rng(0).random((2, 32, 32)) < 0.5,
    ):
        transform = vision.Compose([vision.Resize(50), vision.RandomResizedCrop(24)])
        result = transform(image, random_stream(0, 1), masks=masks)
        assert result.masks.shape == (*masks.shape[:-2], 24, 24)
        assert result.masks.dtype == masks.dtype
        assert set(np.unique(result.masks)) <= set(np.unique(masks))
        assert result.boxes is None
        assert result.kept is None


def test_the_border_of_masks() -> None:
    result = vision.Pad(1, fill=9, mask_fill=255)(gradient(2, 2), masks=np.zeros((2, 2), np.uint8))
    assert result.masks.tolist() == [[255] * 4, [255, 0, 0, 255], [255, 0, 0, 255], [255] * 4]
    assert result.image[0, 0].tolist() == [9, 9, 9]


BOXES = np.array([[0, 0, 2, 2], [4, 4, 8, 8], [5, 5, 5, 7]])
"""The center crop to 4 x 4 leaves nothing of the first box; the last is empty from the start."""


def test_boxes_without_area_are_kept_removed_or_errors() -> None:
    image, crop = gradient(10, 10), [vision.CenterCrop(4)]
    kept = vision.Compose(crop)(image, boxes=BOXES)
    assert kept.boxes.tolist() == [[0, 0, 0, 0], [1, 1, 4, 4], [2, 2, 2, 4]]
    assert kept.kept.tolist() == [0, 1, 2]
    removed = vision.Compose(crop, empty_boxes="remove")(image, boxes=BOXES)
    assert removed.boxes.tolist() == [[1, 1, 4, 4]]
    assert removed.kept.tolist() == [1]
    with pytest.raises(ArgumentError, match=r"Compose: box 0 has no area left in the image"):
        vision.Compose(crop, empty_boxes="raise")(image, boxes=BOXES)
    with pytest.raises(ArgumentError, match="empty_boxes='remove' to the outer Compose"):
        vision.Compose([vision.Compose(crop, empty_boxes="remove")])
    none = vision.Compose(crop, empty_boxes="remove")(image, boxes=np.zeros((0, 4)))
    assert none.boxes.shape == (0, 4)


def test_labels_of_boxes_are_removed_with_them() -> None:
    example = {
        "image": gradient(10, 10),
        "boxes": BOXES,
        "masks": np.zeros((3, 10, 10), bool),
        "box_labels": [7, 8, 9],
        "label": 5,
    }
    transform = vision.Compose(
        [vision.CenterCrop(4)], empty_boxes="remove", per_box=("box_labels", "masks")
    )
    got = transform(example)
    assert set(got) == set(example)
    assert got["image"].shape == (4, 4, 3)
    assert got["boxes"].tolist() == [[1, 1, 4, 4]]
    assert got["masks"].shape == (1, 4, 4)
    assert got["box_labels"].tolist() == [8]
    assert got["label"] == 5
    for labels, problem in (([1, 2], r"has shape \(2,\)"), (3, r"has shape \(\)")):
        with pytest.raises(ArgumentError, match=f"a row for each of 3 boxes; it {problem}"):
            transform({**example, "box_labels": labels})
    del example["box_labels"]
    with pytest.raises(ArgumentError, match=r"'box_labels' must .* it is missing"):
        transform(example)


def test_dicts_without_boxes_or_masks() -> None:
    crop = vision.Compose([vision.CenterCrop(4)], empty_boxes="remove")
    got = crop({"image": gradient(), "label": 1})
    assert list(got) == ["image", "label"]
    got = crop({"image": gradient(), "boxes": None})
    assert got["boxes"] is None


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"boxes": [[0, 0, 1, 1]]}, ArgumentTypeError, "boxes must be a NumPy array .* not list"),
        ({"boxes": np.array([["a"] * 4])}, ArgumentTypeError, "boxes must be a NumPy array"),
        ({"boxes": np.zeros(4)}, ShapeError, r"boxes must have shape \(boxes, 4\).* not \(4,\)"),
        ({"boxes": np.array([[0, 0, 1, 1], [3, 0, 1, 1]])}, ArgumentError, "box 1 must be finite"),
        ({"boxes": np.full((1, 4), np.nan)}, ArgumentError, "box 0 must be finite with left <="),
        ({"masks": [[0]]}, ArgumentTypeError, "masks must be a NumPy array, not list"),
        ({"masks": np.zeros((8, 6))}, ShapeError, r".* of the image, \(6, 8\), not \(8, 6\)"),
        ({"masks": np.zeros((6, 8, 1))}, ShapeError, r".* of the image, \(6, 8\), not \(6, 8, 1\)"),
    ],
)
def test_boxes_and_masks_that_do_not_fit(
    parts: dict[str, object], error: type[EmberError], message: str
) -> None:
    with pytest.raises(error, match=f"CenterCrop: {message}"):
        vision.CenterCrop(2)(gradient(6, 8), **parts)
    with pytest.raises(error, match=f"CenterCrop: {message}"):
        vision.CenterCrop(2)({"image": gradient(6, 8), **parts})
