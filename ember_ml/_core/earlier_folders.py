"""Recovery of folders after a crash of an earlier version, which replaced whole folders.

That version wrote the new folder as `.NAME.new-XXXXXXXX` and renamed the old one to `.NAME.old`.
Other folders with such names are not touched.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path


def old_folder(target: Path) -> Path:
    """Return the path to which an earlier version renamed a folder before replacing it."""
    return target.parent / f".{target.name}.old"


def clean_up(target: Path, files: frozenset[str], recognizes: Callable[[Path], bool]) -> None:
    """Restore the old folder if the new one is missing, and remove temporary folders.

    Args:
        target: The folder.
        files: Names of the files that earlier versions wrote. Other folders are kept.
        recognizes: Returns whether a folder was written by an earlier version.
    """
    old = old_folder(target)
    if os.path.isdir(old) and recognizes(old):
        if not os.path.lexists(target):
            os.rename(old, target)
        elif _has_only(old, files):
            shutil.rmtree(old, ignore_errors=True)
    new = re.compile(re.escape(f".{target.name}.new-") + "[a-z0-9_]{8}")
    for name in _names(target.parent):
        if new.fullmatch(name) and _has_only(target.parent / name, files):
            shutil.rmtree(target.parent / name, ignore_errors=True)


def _has_only(folder: Path, files: frozenset[str]) -> bool:
    """Return whether a path is a folder that contains only these files."""
    is_folder = folder.is_dir() and not folder.is_symlink()
    return is_folder and all(
        name in files and (folder / name).is_file() for name in os.listdir(folder)
    )


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # it does not exist, or cannot be listed
        return []
