"""Augmentations: shapes, dtypes, padding, randomness that depends on the generator only."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import registry
from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml.data import ArrayDataset, DataLoader, augmentation, random_stream, vision
from ember_ml.data.augmentation import Compose, Crop, Drop, Erase, Jitter, Scale, Shift, Views

RNG = np.random.default_rng(0)
ENTRIES = registry.available("augmentations")
IMAGE = RNG.random((8, 9, 2)).astype("float32")
LARGE = RNG.random((20, 9, 2)).astype("float32")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.bare)
def test_shape_dtype_and_generator(entry):
    augment = entry.target()
    first, second = (augment(LARGE, random_stream(1, 5)) for _ in range(2))
    assert first.shape == LARGE.shape
    assert first.dtype == LARGE.dtype
    np.testing.assert_array_equal(first, second)
    results = [augment(LARGE, random_stream(1, index)) for index in range(20)]
    changed = sum(not np.array_equal(each, LARGE) for each in results)
    assert changed == 0 if entry.bare == "compose" else changed > 5
    never = entry.target(probability=0.0)
    np.testing.assert_array_equal(never(LARGE, random_stream(1, 5)), LARGE)


@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES if e.bare not in ("shift", "erase")], ids=lambda e: e.bare
)
def test_padding_stays(entry):
    """And the positions of the sequence are augmented as a sequence without padding."""
    mask = np.arange(12) < 8
    x = np.concatenate([IMAGE, np.full((4, 9, 2), 7.0, "float32")])
    found = entry.target()(x, random_stream(2, 0), mask)
    np.testing.assert_array_equal(found[8:], 7.0)
    np.testing.assert_array_equal(found[:8], entry.target()(IMAGE, random_stream(2, 0)))


def test_a_shift_moves_pixels():
    for index in range(30):
        moved = Shift(2)(IMAGE, random_stream(0, index))
        down, right = random_stream(0, index).integers(-2, 2, 2, endpoint=True)
        padded = np.pad(IMAGE, ((2, 2), (2, 2), (0, 0)))
        expected = padded[2 - down : 10 - down, 2 - right : 11 - right]
        np.testing.assert_array_equal(moved, expected)


def test_values_have_the_given_distribution():
    x = np.ones(20_000)
    assert Jitter(0.3)(x, random_stream(0, 0)).std() == pytest.approx(0.3, rel=0.05)
    assert (Drop(0.2)(x, random_stream(0, 0)) == 0).mean() == pytest.approx(0.2, abs=0.02)
    factors = [np.log(Scale(0.5)(np.ones(1), random_stream(0, i))[0]) for i in range(2000)]
    assert np.std(factors) == pytest.approx(0.5, rel=0.1)
    assert (Erase(0.5)(np.ones((8, 8)), random_stream(0, 0)) == 0).sum() == 16


def test_a_crop_is_a_linear_interpolation():
    line = np.linspace(0.0, 1.0, 50)
    found = Crop(0.5)(line, random_stream(0, 3))
    np.testing.assert_allclose(np.diff(found), np.diff(found)[0], atol=1e-9)
    assert 0.5 <= found[-1] - found[0] <= 1.0
    np.testing.assert_array_equal(Crop()(np.ones(1), random_stream(0, 0)), 1.0)


def test_views_depend_on_seed_epoch_and_index_only():
    data = ArrayDataset({"inputs": RNG.random((10, 4)), "targets": np.arange(10)})
    views = Views(data, Jitter(), seed=3)
    whole = views.batch(range(10))["inputs"]
    np.testing.assert_array_equal(views.batch([7, 2])["inputs"], whole[[7, 2]])
    np.testing.assert_array_equal(views[7]["inputs"], whole[7])
    assert not np.array_equal(views.for_epoch(1).batch(range(10))["inputs"], whole)
    loader = DataLoader(views, 5, shuffle=True, seed=1, num_workers=2, backend="numpy")
    rows = {}
    for batch in loader:
        pairs = zip(batch["targets"].tolist(), batch["inputs"].numpy(), strict=True)
        rows |= dict(pairs)
    np.testing.assert_array_equal(rows[4], whole[4])


def test_transforms_of_images_are_augmentations():
    flip = vision.RandomFlip(1.0)
    data = ArrayDataset({"inputs": np.stack([IMAGE[:, :8, :1]] * 2)})
    found = Views(data, flip, seed=0).batch([0])["inputs"][0]
    np.testing.assert_array_equal(found, IMAGE[:, :8, :1][:, ::-1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Jitter()(IMAGE, 7), ArgumentTypeError, "Jitter: rng must be"),
        (lambda: Shift()(np.ones(3), random_stream(0, 0)), ShapeError, "at least 2 axes"),
        (
            lambda: Jitter()(IMAGE, random_stream(0, 0), np.ones(3, bool)),
            ShapeError,
            r"mask must have the shape \(8,\)",
        ),
        (
            lambda: Views(ArrayDataset({"inputs": IMAGE}), lambda x, rng: x[:1], 0).batch([0]),
            ShapeError,
            "changed the shape",
        ),
        (lambda: Views(ArrayDataset({"inputs": IMAGE}), 3, 0), ArgumentTypeError, "function"),
    ],
)
def test_bad_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_steps_by_name_config_and_function():
    steps = ["jitter", {"type": "scale", "std": 0.5}, Erase(), lambda x, rng: x + 1]
    found = Compose(steps)(IMAGE, random_stream(0, 0))
    assert found.mean() > IMAGE.mean() + 0.3
    assert augmentation.Compose(["jitter"]).config.to_dict()["steps"][0]["std"] == 0.1
