"""Folders that are whole or not there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ember_ml._core.files import sync_folder


def write_folder(path: str | os.PathLike[str], files: Mapping[str, bytes]) -> None:
    """Write a folder of files so that `find_folder`, also after a crash, finds the old or the new.

    The new folder is made beside the old one; two renames put it in its place.
    """
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{target} is a file, not a folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    recover(target)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}.new-", dir=target.parent))
    try:
        for name, content in files.items():
            _write(made / name, content)
        made.chmod(0o755)
        sync_folder(made)
        old = _old(target)
        if target.exists():
            os.rename(target, old)
        os.rename(made, target)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        recover(target)
        raise
    sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def find_folder(path: str | os.PathLike[str]) -> Path:
    """Where the folder's content is: in its place, or, after a crash between renames, beside it."""
    target = Path(path)
    return target if target.exists() or not _old(target).exists() else _old(target)


def recover(target: Path) -> None:
    """Put things in order after a write that was cut off."""
    old = _old(target)
    if old.exists():
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(old, target)
    for left in target.parent.glob(f".{target.name}.new-*"):
        shutil.rmtree(left, ignore_errors=True)


def _old(target: Path) -> Path:
    return target.parent / f".{target.name}.old"


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
