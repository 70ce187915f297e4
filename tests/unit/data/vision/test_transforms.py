"""Transforms of images: against Pillow, OpenCV, NumPy and colorsys; examples, seeds, errors."""

from __future__ import annotations

import colorsys
import pickle
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image, ImageEnhance

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, EmberError, ShapeError
from ember_ml.data import ArrayDataset, DataLoader, random_stream, vision
from ember_ml.data.vision import color

from .pictures import gradient, photo

SIZES = [(30, 40), (25, 33), (120, 160), (90, 50), (1, 1)]
FILTERS = ["bilinear", "bicubic", "lanczos", "box", "hamming"]
TRANSFORMS = [
    vision.Resize(24),
    vision.Resize((10, 12), antialias=False),
    vision.CenterCrop(20),
    vision.RandomCrop((40, 30), padding=4, mode="reflect"),
    vision.RandomFlip(),
    vision.RandomFlip(0.5, axis="vertical"),
    vision.RandomResizedCrop(16),
    vision.ColorJitter(0.4, 0.4, 0.4, 0.1),
    vision.ToFloat(),
    vision.Patches((20, 10)),
    vision.Pad(3, mode="edge"),
    vision.Compose([vision.RandomCrop(32), vision.ToFloat(), vision.Normalize(0.5, [1, 2, 3])]),
]
of_each_transform = pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: str(t)[:40])


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize("size", SIZES)
def test_resize_equals_pillow(size: tuple[int, int], interpolation: str) -> None:
    image = photo()
    resampling = Image.Resampling[interpolation.upper()]
    expected = np.asarray(Image.fromarray(image).resize(size[::-1], resampling))
    transform = vision.Resize(size, interpolation=interpolation)
    np.testing.assert_array_equal(transform(image), expected)
    gray = vision.resize(image[..., :1], size, interpolation=interpolation)
    np.testing.assert_array_equal(gray[..., 0], expected[..., 0])
    four = np.concatenate([image, image[..., :1]], axis=-1)  # every channel by itself
    np.testing.assert_array_equal(transform(four)[..., 3], expected[..., 0])
    real = image.astype(np.float32) / 255
    channel = np.asarray(Image.fromarray(real[..., 1]).resize(size[::-1], resampling))
    np.testing.assert_array_equal(transform(real)[..., 1], channel)
    wide = transform(image.astype(np.uint16) * 257)
    assert wide.dtype == np.uint16
    np.testing.assert_allclose(wide[..., 1] / 65535, np.clip(channel, 0, 1), atol=2e-5)


@pytest.mark.parametrize("size", SIZES)
def test_nearest_equals_pillow(size: tuple[int, int]) -> None:
    """Except at places exactly between two pixels, where Pillow's sums of steps are inexact."""
    image = photo()
    expected = np.asarray(Image.fromarray(image).resize(size[::-1], Image.Resampling.NEAREST))
    got = vision.Resize(size, interpolation="nearest")(image)
    rows, columns = (
        (2 * np.arange(count) + 1) * length % (2 * count) != 0
        for count, length in zip(size, (60, 80), strict=True)
    )
    if size in ((30, 40), (120, 160), (1, 1)):  # steps of powers of two are exact
        rows[:] = columns[:] = True
    assert rows.mean() > 0.4
    np.testing.assert_array_equal(got[rows][:, columns], expected[rows][:, columns])
    plain = vision.Resize(size, antialias=False, interpolation="nearest")(image)
    np.testing.assert_array_equal(plain, got)


@pytest.mark.parametrize("size", SIZES)
def test_bilinear_without_antialias_equals_opencv(size: tuple[int, int]) -> None:
    image = photo().astype(np.float32)
    expected = cv2.resize(image, size[::-1], interpolation=cv2.INTER_LINEAR)
    got = vision.Resize(size, antialias=False)(image)
    np.testing.assert_allclose(got, expected, atol=1e-3)
    rounded = vision.Resize(size, antialias=False)(photo())
    assert rounded.dtype == np.uint8
    np.testing.assert_allclose(rounded, expected, atol=0.5 + 1e-3)


def test_antialias_matters_only_when_shrinking() -> None:
    stripes = np.tile(np.array([[[0], [255]]], np.uint8), (16, 8, 1))
    assert vision.resize(stripes, 5).std() < 30
    assert vision.resize(stripes, 5, antialias=False).std() > 60
    larger = [vision.resize(stripes, 40, antialias=choice) for choice in (True, False)]
    np.testing.assert_allclose(larger[0], larger[1].astype(float), atol=1.01)


def test_one_integer_is_the_shorter_side() -> None:
    assert vision.Resize(30)(photo(60, 80)).shape == (30, 40, 3)
    assert vision.Resize(30)(photo(80, 60)).shape == (40, 30, 3)
    assert vision.Resize(7)(photo(60, 60)).shape == (7, 7, 3)
    assert vision.Resize(1)(photo(80, 2)).shape == (40, 1, 3)


def test_crops_flips_and_borders_equal_numpy() -> None:
    image = gradient(7, 9)
    np.testing.assert_array_equal(vision.CenterCrop((3, 4))(image), image[2:5, 2:6])
    rng = random_stream(1, 0)
    np.testing.assert_array_equal(vision.RandomFlip(1.0)(image, rng), np.fliplr(image))
    np.testing.assert_array_equal(vision.RandomFlip(1.0, "vertical")(image, rng), image[::-1])
    np.testing.assert_array_equal(vision.RandomFlip(0.0)(image, rng), image)
    border = ((1, 2), (3, 4))
    for mode in ("constant", "edge", "reflect"):
        options: dict[str, Any] = {"constant_values": 9} if mode == "constant" else {}
        expected = np.pad(image, (*border, (0, 0)), mode, **options)
        np.testing.assert_array_equal(vision.Pad(border, fill=9, mode=mode)(image), expected)
    assert vision.Pad(2)(image).shape == (11, 13, 3)
    assert vision.Pad((1, 0))(image).shape == (9, 9, 3)


def test_every_random_crop_is_a_part_of_the_image() -> None:
    image = gradient(6, 8, 1)
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded[..., 0], (4, 5))
    crop = vision.RandomCrop((4, 5), padding=1)
    seen = set()
    for index in range(400):
        part = crop(image, random_stream(3, index))[..., 0]
        matches = np.argwhere((windows == part).all(axis=(-2, -1)))
        assert len(matches) == 1
        seen.add(tuple(matches[0]))
    assert len(seen) == windows.shape[0] * windows.shape[1]  # each place is drawn


def test_areas_and_ratios_of_random_resized_crops() -> None:
    """The ramps show where the part was."""
    rows, columns = np.mgrid[:200, :300].astype(np.float32)
    image = np.stack([rows, columns], axis=-1)
    crop = vision.RandomResizedCrop(32, scale=(0.2, 0.5), ratio=(0.5, 2.0))
    areas, ratios = [], []
    for index in range(200):
        part = crop(image, random_stream(5, index))
        assert part.shape == (32, 32, 2)
        height = (part[20, 0, 0] - part[10, 0, 0]) / 10 * 32
        width = (part[0, 20, 1] - part[0, 10, 1]) / 10 * 32
        areas.append(height * width / 60_000)
        ratios.append(width / height)
    assert 0.19 < min(areas) < 0.23
    assert 0.47 < max(areas) < 0.51
    assert 0.49 < min(ratios) < 0.6
    assert 1.7 < max(ratios) < 2.03
    narrow = vision.RandomResizedCrop(8, scale=(1.0, 1.0), ratio=(1.0, 1.0))
    assert narrow(gradient(4, 40), random_stream(5, 0)).shape == (8, 8, 3)


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0, 1.7])
@pytest.mark.parametrize(
    ("name", "enhance"),
    [
        ("brightness", ImageEnhance.Brightness),
        ("contrast", ImageEnhance.Contrast),
        ("saturation", ImageEnhance.Color),
    ],
)
def test_color_jitter_equals_pillow(name: str, enhance: Any, factor: float) -> None:
    image = photo()
    expected = np.asarray(enhance(Image.fromarray(image)).enhance(factor), np.float32)
    got = vision.ColorJitter(**{name: (factor, factor)})(image, random_stream(0, 0))
    assert got.dtype == np.uint8
    np.testing.assert_allclose(got, expected, atol=1.6)  # Pillow rounds the gray values
    real = vision.ColorJitter(**{name: (factor, factor)})(
        vision.ToFloat()(image), random_stream(0, 0)
    )
    np.testing.assert_allclose(real * 255, expected, atol=1.6)


@pytest.mark.parametrize("turn", [-0.5, -0.1, 0.25, 0.4])
def test_rotated_hues_equal_colorsys(turn: float) -> None:
    pixels = np.concatenate([photo(4, 6), np.zeros((4, 1, 3)), np.full((4, 1, 3), 255)], axis=1)
    pixels = (pixels / 255).astype(np.float32)
    expected = np.empty_like(pixels)
    for place in np.ndindex(4, 8):
        hue, saturation, value = colorsys.rgb_to_hsv(*pixels[place].tolist())
        expected[place] = colorsys.hsv_to_rgb((hue + turn) % 1.0, saturation, value)
    np.testing.assert_allclose(color.rotate_hue(pixels, turn), expected, atol=1e-5)
    jittered = vision.ColorJitter(hue=(turn, turn))(pixels, random_stream(0, 0))
    np.testing.assert_allclose(jittered, expected, atol=1e-5)


def test_gray_images_have_brightness_and_contrast_only() -> None:
    gray = photo()[..., :1]
    unchanged = vision.ColorJitter(saturation=0.9, hue=0.5)(gray, random_stream(0, 0))
    np.testing.assert_allclose(unchanged, gray, atol=1)
    assert np.abs(vision.ColorJitter(0.9)(gray, random_stream(0, 0)).astype(int) - gray).max() > 5
    with pytest.raises(ShapeError, match="ColorJitter: expected 1 or 3 channels"):
        vision.ColorJitter(0.1)(gradient(channels=4), random_stream(0, 0))


def test_floats_and_normalization() -> None:
    image = photo()
    real = vision.ToFloat()(image)
    assert real.dtype == np.float32
    np.testing.assert_array_equal(real, (image / 255).astype(np.float32))
    wide = vision.ToFloat()(image.astype(np.uint16) * 257)
    np.testing.assert_allclose(wide, real, rtol=1e-6)
    assert vision.ToFloat()(real) is real
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    got = vision.Normalize(mean, std)(real)
    np.testing.assert_allclose(got, (image / 255 - mean) / std, rtol=1e-4, atol=1e-5)
    with pytest.raises(ArgumentTypeError, match=r"Normalize: .*not uint8; use ToFloat before"):
        vision.Normalize(mean, std)(image)
    with pytest.raises(ShapeError, match="Normalize: mean has 3 values, the image 1 channels"):
        vision.Normalize(mean, std)(real[..., :1])


def test_patches_are_windows_row_by_row() -> None:
    image = gradient(6, 8)
    got = vision.Patches((3, 2))(image)
    expected = [image[r : r + 3, c : c + 2].ravel() for r in (0, 3) for c in (0, 2, 4, 6)]
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(vision.patches(image, (3, 2)), expected)
    with pytest.raises(ShapeError, match=r"6 x 8 .* not divisible into patches of 4 x 4; use"):
        vision.patches(image, 4)
    after = vision.Compose([vision.Patches(2), vision.RandomFlip()])
    with pytest.raises(ShapeError, match=r"RandomFlip: an image must have shape"):
        after(image, random_stream(0, 0))


@of_each_transform
def test_the_result_is_a_function_of_the_generator(transform: vision.Transform) -> None:
    image = photo()
    before = image.copy()
    results = [transform(image, random_stream(7, index)) for index in range(8)]
    np.testing.assert_array_equal(image, before)
    assert all(result.flags["C_CONTIGUOUS"] for result in results)
    twin = pickle.loads(pickle.dumps(transform))
    for index, result in enumerate(results):
        np.testing.assert_array_equal(twin(image, random_stream(7, index)), result)
    differ = any(not np.array_equal(result, results[0]) for result in results)
    assert differ == transform.is_random
    assert transform.is_random or np.array_equal(transform(image), results[0])


@of_each_transform
def test_the_repr_makes_the_same_transform(transform: vision.Transform) -> None:
    twin = eval(repr(transform), vars(vision))
    assert repr(twin) == repr(transform)
    np.testing.assert_array_equal(
        twin(photo(), random_stream(2, 3)), transform(photo(), random_stream(2, 3))
    )


def test_a_random_transform_needs_a_generator() -> None:
    for rng in (None, 7, np.random.RandomState(0)):
        with pytest.raises(ArgumentTypeError, match=r"RandomFlip: rng must be a numpy.random.Gen"):
            vision.RandomFlip()(photo(), rng)
    nested = vision.Compose([vision.Resize(8), vision.Compose([vision.RandomFlip()])])
    with pytest.raises(ArgumentTypeError, match="Compose: rng must be"):
        nested(photo())


@of_each_transform
@pytest.mark.parametrize(
    "image",
    [
        None,
        "x.png",
        3,
        [[1, 2]],
        Image.new("RGB", (4, 4)),
        np.zeros((4, 4)),
        np.zeros((4, 0, 3)),
        np.zeros((4, 4, 3), np.int64),
        np.zeros((4, 4, 3), object),
        np.zeros((1, 4, 4, 3)),
    ],
    ids=lambda image: type(image).__name__,
)
def test_unknown_inputs_raise(transform: vision.Transform, image: object) -> None:
    for example in (image, (image, 1), {"image": image}):
        with pytest.raises((ArgumentTypeError, ShapeError), match=type(transform).__name__):
            transform(example, random_stream(0, 0))


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (vision.Resize, {"size": 0}, "Resize: size must be at least 1, not 0"),
        (vision.Resize, {"size": (3, 4, 5)}, "Resize: size must be .height, width."),
        (vision.Resize, {"size": 2.5}, "Resize: size must be an integer"),
        (vision.Resize, {"size": 8, "interpolation": "cubic"}, "Resize: interpolation must be one"),
        (
            vision.Resize,
            {"size": 8, "antialias": False, "interpolation": "bicubic"},
            "'nearest', 'bilinear' with antialias=False, not 'bicubic'",
        ),
        (vision.RandomResizedCrop, {"size": 8, "scale": (0.5, 2.0)}, "scale must be .low, high."),
        (vision.RandomResizedCrop, {"size": 8, "ratio": (2.0, 1.0)}, "ratio must be .low, high."),
        (vision.RandomFlip, {"probability": 1.5}, "RandomFlip: probability must be"),
        (vision.RandomFlip, {"axis": "diagonal"}, "RandomFlip: axis must be"),
        (vision.RandomCrop, {"size": 8, "padding": -1}, "RandomCrop: padding must be at least 0"),
        (vision.Pad, {"padding": (1, 2, 3)}, "Pad: padding must be an integer, .rows, columns."),
        (vision.Pad, {"padding": 1, "mode": "wrap"}, "Pad: mode must be 'constant'"),
        (vision.Normalize, {"mean": 0, "std": 0}, "Normalize: std must be positive"),
        (vision.Normalize, {"mean": "a", "std": 1}, "Normalize: mean must be a finite number"),
        (vision.ColorJitter, {"brightness": -1}, "ColorJitter: brightness must be"),
        (vision.ColorJitter, {"hue": 0.6}, "ColorJitter: hue must be .* at most 0.5"),
        (vision.ColorJitter, {"hue": "red"}, "ColorJitter: hue must be"),
        (vision.Patches, {"size": "4"}, "Patches: size must be an integer"),
        (vision.Compose, {"transforms": [abs]}, "is not a transform of data.vision"),
        (vision.Compose, {"transforms": [], "empty_boxes": "drop"}, "empty_boxes must be 'keep'"),
    ],
)
def test_bad_arguments(cls: type, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(EmberError, match=message):
        cls(**arguments)


def test_images_smaller_than_the_crop() -> None:
    for transform in (vision.CenterCrop((7, 3)), vision.RandomCrop((3, 9))):
        with pytest.raises(ShapeError, match=r"Crop: an image of 6 x 8 .* is smaller than the"):
            transform(gradient(6, 8), random_stream(0, 0))


AUGMENT = vision.Compose(
    [vision.RandomResizedCrop(16), vision.RandomFlip(), vision.ColorJitter(0.3, hue=0.1)]
)


def examples(form: str) -> ArrayDataset:
    images = np.stack([photo(24, 24) + np.uint8(index) for index in range(10)])
    labels = np.arange(10)
    if form == "dict":
        return ArrayDataset({"image": images, "label": labels})
    return ArrayDataset(images, labels) if form == "tuple" else ArrayDataset(images)


def leaves(form: str, batch: Any) -> list[np.ndarray]:
    parts = {"dict": lambda: [batch["image"], batch["label"]], "tuple": lambda: list(batch)}
    return [part.numpy() for part in parts.get(form, lambda: [batch])()]


@pytest.mark.parametrize("form", ["array", "tuple", "dict"])
def test_seeded_maps_depend_on_seed_epoch_and_index_only(form: str) -> None:
    mapped = examples(form).map(AUGMENT, seed=7)
    epochs = []
    for options in ({}, {"num_workers": 2, "worker_type": "thread"}):
        loader = DataLoader(mapped, 4, shuffle=True, seed=1, backend="numpy", **options)
        epochs.append([[leaves(form, batch) for batch in loader] for _ in range(2)])
    for batches, others in zip(*epochs, strict=True):
        for batch, other in zip(batches, others, strict=True):
            assert batch[0].shape[1:] == (16, 16, 3)
            for part, twin in zip(batch, other, strict=True):
                np.testing.assert_array_equal(part, twin)
    if form != "array":
        (first, _), (second, _) = (
            [np.concatenate([batch[at] for batch in epoch]) for at in (0, 1)] for epoch in epochs[0]
        )
        assert not np.array_equal(first, second)


def test_an_example_without_an_image() -> None:
    with pytest.raises(ArgumentError, match="must have a key 'image'; it has 'picture'"):
        vision.ToFloat()({"picture": photo()})
