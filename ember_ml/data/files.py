"""Paths of data files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data.errors import DataFileError

PathLike: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = PathLike | Sequence[PathLike]
"""A file, or several."""


def existing_files(where: str, paths: Paths) -> tuple[Path, ...]:
    """Return absolute paths of files that exist.

    Args:
        where: Name of the class or function in errors.
        paths: A file, or several.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    files = []
    for path in paths:
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentTypeError(f"{where}: {path!r:.60} is not the path of a file")
        files.append(Path(path).absolute())
        if not files[-1].is_file():
            kind = "a folder, not a file" if files[-1].is_dir() else "missing"
            raise DataFileError(f"{where}: {files[-1]} is {kind}")
    if not files:
        raise ArgumentError(f"{where}: pass at least one file")
    return tuple(files)
