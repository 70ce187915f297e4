"""Class folders and manifests: order, links, loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from ember_ml.data import DataFileError
from ember_ml.data.class_folders import class_labels, scan_classes
from ember_ml.data.manifest import read_manifest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Folders "b" and "a", and a folder outside of them."""
    for name in ("data/b/2.txt", "data/b/10.TXT", "data/a/x/y/0.txt", "data/a/z.txt", "more/1.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "data/a/.hidden.txt").write_text("")
    (tmp_path / "data/a/notes.md").write_text("")
    (tmp_path / "data/top.txt").write_text("")
    return tmp_path / "data"


def scan(root: Path) -> list[str]:
    files = scan_classes("Files", root, (".txt",), "text")
    classes, labels = class_labels(files)
    assert [classes[label] for label in labels] == [file.label for file in files]
    return [f"{file.label}: {file.path.relative_to(root)}" for file in files]


EXPECTED = ["a: a/x/y/0.txt", "a: a/z.txt", "b: b/10.TXT", "b: b/2.txt"]


def test_the_order_is_that_of_the_names(root: Path) -> None:
    assert scan(root) == EXPECTED


def test_links_to_folders_and_files_are_followed(root: Path) -> None:
    (root / "c").symlink_to(root.parent / "more")
    (root / "b" / "more").symlink_to(root.parent / "more")
    (root / "b" / "link.txt").symlink_to(root / "a" / "z.txt")
    assert scan(root) == [*EXPECTED, "b: b/link.txt", "b: b/more/1.txt", "c: c/1.txt"]


@pytest.mark.parametrize(("at", "target"), [("b/up", ".."), ("b/self", "../b"), ("c", ".")])
def test_a_link_to_a_folder_above_is_a_loop(root: Path, at: str, target: str) -> None:
    (root / at).symlink_to(target)
    with pytest.raises(DataFileError, match=rf"{at}.*: a symbolic link to a folder above it"):
        scan(root)


@pytest.mark.parametrize(("at", "target"), [("b/own.txt", "own.txt"), ("c", "c"), ("d", "gone")])
def test_broken_links_are_named(root: Path, at: str, target: str) -> None:
    (root / at).symlink_to(target)
    with pytest.raises(DataFileError, match=rf"{at}: a broken symbolic link"):
        scan(root)


def test_a_loop_in_a_manifest_is_named_with_its_line(root: Path) -> None:
    (root / "own.txt").symlink_to("own.txt")
    manifest = root / "list.csv"
    manifest.write_text("path\na/z.txt\nown.txt\n")
    with pytest.raises(DataFileError, match=r"list\.csv:3: .*own\.txt"):
        read_manifest(manifest, root, "text")
