"""Files in one folder for each class."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ember_ml.data.errors import DataFileError


class LabeledFile(NamedTuple):
    """File and the name of its class; None if it has none."""

    path: Path
    label: str | None


def scan_classes(where: str, root: Path, suffixes: tuple[str, ...], kind: str) -> list[LabeledFile]:
    """Return the files in the class folders of a root, sorted by class and path.

    Files may be nested deeper. Names that start with a dot are ignored. Links are followed.

    Args:
        where: Name of the class in errors.
        root: Folder with one folder for each class.
        suffixes: Suffixes of the files, in lower case.
        kind: Kind of the files in errors, such as "audio".

    Raises:
        DataFileError: If there are no files, or a class has none, or a link is broken or a loop.
    """
    names = ", ".join(suffixes)
    files = []
    for folder in _entries(root):
        if not folder.is_dir():
            continue
        paths = [path for path in _walk(folder, {_identity(root)}) if _matches(path, suffixes)]
        if not paths:
            raise DataFileError(
                f"{where}: the class folder {folder} contains no {kind} file ({names})"
            )
        files += [LabeledFile(path, folder.name) for path in paths]
    if not files:
        raise DataFileError(
            f"{where}: {root} has no class folders with {kind} files ({names}); list files without "
            "classes in a manifest"
        )
    return files


def class_labels(files: Sequence[LabeledFile]) -> tuple[tuple[str, ...], np.ndarray | None]:
    """Return the sorted names of the classes, and the class of each file; None without labels.

    Args:
        files: Files, all with labels or none.
    """
    labels = [file.label for file in files if file.label is not None]
    if not labels:
        return (), None
    names = tuple(sorted(set(labels)))
    index = {name: number for number, name in enumerate(names)}
    return names, np.array([index[label] for label in labels], np.int64)


def _matches(path: Path, suffixes: tuple[str, ...]) -> bool:
    return path.suffix.lower() in suffixes


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _entries(folder: Path) -> list[Path]:
    """Return the entries of a folder by name; raise an error at a broken link."""
    try:
        with os.scandir(folder) as scanned:
            entries = [entry for entry in scanned if not entry.name.startswith(".")]
    except OSError as error:
        raise DataFileError(f"{folder}: {error.strerror or error}") from None
    for entry in entries:
        if entry.is_symlink() and not os.path.exists(entry.path):
            raise DataFileError(
                f"{entry.path}: a broken symbolic link: its target is missing, or it is a loop"
            )
    return [folder / name for name in sorted(entry.name for entry in entries)]


def _walk(folder: Path, above: set[tuple[int, int]]) -> Iterator[Path]:
    """Yield the files below a folder, sorted; raise an error at a link to a folder above."""
    identity = _identity(folder)
    if identity in above:
        raise DataFileError(f"{folder}: a symbolic link to a folder above it, which is a loop")
    for path in _entries(folder):
        if path.is_dir():
            yield from _walk(path, above | {identity})
        elif path.is_file():
            yield path
