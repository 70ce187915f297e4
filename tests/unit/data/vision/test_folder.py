"""Folders of image files: classes, order, manifests, worker processes, damaged files."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data import DataFileError, DataLoader, vision

from .pictures import photo

CLASSES = ["b", "a", "c"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two files of each of three classes, one of them nested, and files to ignore."""
    folder = tmp_path / "data"
    for number, name in enumerate(CLASSES):
        vision.write(folder / name / "0.png", photo() + np.uint8(number))
        vision.write(folder / name / "more" / "1.BMP", photo() + np.uint8(10 + number))
    (folder / "a" / "notes.txt").write_text("not an image")
    (folder / "a" / ".hidden.png").write_text("not an image")
    (folder / ".cache").mkdir()
    return folder


def test_folders_are_classes(root: Path) -> None:
    dataset = vision.ImageFolder(root)
    assert dataset.classes == ("a", "b", "c")
    assert dataset.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert [path.name for path in dataset.paths] == ["0.png", "1.BMP"] * 3
    for index, (image, label) in enumerate(dataset):
        number = CLASSES.index(dataset.classes[label]) + 10 * (index % 2)
        np.testing.assert_array_equal(image, photo() + np.uint8(number))
    assert dataset[-1][1] == 2
    assert type(dataset[0][1]) is int
    assert repr(dataset) == f"ImageFolder({str(root)!r}: 6 files, 3 classes, mode='RGB')"
    assert vision.ImageFolder(root, mode="L")[0][0].shape == (60, 80, 1)


def test_files_in_order(root: Path) -> None:
    paths = [root / "c" / "0.png", root / "a" / "0.png"]
    images = vision.ImageFiles(paths)
    np.testing.assert_array_equal(images[0], photo() + np.uint8(2))
    labeled = vision.ImageFiles(paths, [7, 3], mode="L")
    assert [label for _, label in labeled] == [7, 3]
    assert len(images) == 2
    with pytest.raises(ArgumentError, match="ImageFiles: there are 2 paths, but 1 labels"):
        vision.ImageFiles(paths, [1])
    with pytest.raises(ArgumentTypeError, match="ImageFiles: paths must be a sequence of paths"):
        vision.ImageFiles(root)
    with pytest.raises(ArgumentError, match=r"ImageFiles: mode must be one of RGB, .*not 'rgb'"):
        vision.ImageFiles(paths, mode="rgb")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_manifests(root: Path, kind: str) -> None:
    manifest = root.parent / f"list.{kind}"
    manifest.write_text(
        "path,label\nc/0.png,y\na/more/1.BMP,x\n"
        if kind == "csv"
        else '{"path": "c/0.png", "label": "y"}\n{"path": "a/more/1.BMP", "label": "x"}\n'
    )
    dataset = vision.ImageFolder(root, manifest)
    assert dataset.classes == ("x", "y")
    assert [label for _, label in dataset] == [1, 0]
    np.testing.assert_array_equal(dataset[0][0], photo() + np.uint8(2))


def test_paths_outside_of_the_root_are_refused(root: Path) -> None:
    outside = root.parent / "outside.png"
    vision.write(outside, photo())
    (root / "link.png").symlink_to(outside)
    (root / "loop.png").symlink_to("loop.png")
    manifest = root / "list.csv"
    for name in ("../outside.png", str(outside), "link.png", "a/../../outside.png"):
        manifest.write_text(f"path\na/0.png\n{name}\n")
        with pytest.raises(DataFileError, match=r"list\.csv:3: .*is outside the folder") as got:
            vision.ImageFolder(root, manifest)
        assert name in str(got.value)
    manifest.write_text("path\nloop.png\n")
    with pytest.raises(DataFileError, match=r"list\.csv:2: .*loop\.png"):
        vision.ImageFolder(root, manifest)


def test_bad_folders(root: Path) -> None:
    with pytest.raises(DataFileError, match=r"ImageFolder: there is no folder .*nowhere"):
        vision.ImageFolder(root / "nowhere")
    with pytest.raises(DataFileError, match="has no class folders with image files"):
        vision.ImageFolder(root / "a" / "more")
    (root / "b" / "up").symlink_to("..")
    with pytest.raises(DataFileError, match=r"b/up: a symbolic link to a folder above it"):
        vision.ImageFolder(root)
    (root / "b" / "up").unlink()
    (root / "d").mkdir()
    with pytest.raises(DataFileError, match=r"class folder .*d contains no image file \(\.png"):
        vision.ImageFolder(root)


def test_a_damaged_file_is_named_with_its_index(root: Path) -> None:
    path = root / "b" / "0.png"
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(DataFileError, match=r"b/0\.png: ") as caught:
        vision.ImageFolder(root).batch(range(6))
    assert caught.value.__notes__ == ["in example 2 of ImageFolder"]
    path.write_bytes((root / "b" / "more" / "1.BMP").read_bytes())
    with pytest.raises(DataFileError, match=r"b/0\.png: the content is BMP"):
        vision.ImageFolder(root)[2]
    assert vision.ImageFolder(root, strict=False)[2][0].shape == (60, 80, 3)
    with pytest.raises(DataFileError, match=r"pixels exceed the limit of 100"):
        vision.ImageFolder(root, max_pixels=100)[0]


def test_resuming_in_worker_processes_is_exact(root: Path) -> None:
    augment = vision.Compose(
        [
            vision.RandomResizedCrop(24),
            vision.RandomFlip(),
            vision.ColorJitter(0.2),
            vision.ToFloat(),
        ]
    )
    mapped = vision.ImageFolder(root).map(augment, seed=5)
    assert pickle.loads(pickle.dumps(mapped)).dataset.paths == mapped.dataset.paths
    plain = DataLoader(mapped, 2, shuffle=True, seed=3, backend="numpy")
    expected = [(x.numpy(), y.numpy()) for _ in range(2) for x, y in plain]
    resumed = DataLoader(
        mapped, 2, shuffle=True, seed=3, backend="numpy", num_workers=1, worker_type="process"
    )
    batches = iter(resumed)
    got = [next(batches)]
    state = resumed.state_dict()
    del batches
    resumed.load_state_dict(state)
    got += [batch for _ in range(2) for batch in resumed]
    assert len(got) == len(expected)
    for (x, y), (other_x, other_y) in zip(expected, got, strict=True):
        np.testing.assert_array_equal(x, other_x.numpy())
        np.testing.assert_array_equal(y, other_y.numpy())
