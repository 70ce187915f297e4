"""Atomic writes of folders."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ember_ml._core.files import sync_folder


def write_folder(path: str | os.PathLike[str], files: Mapping[str, bytes]) -> None:
    """Write a folder atomically: `find_folder` finds the old or the new one, also after a crash.

    The new folder is written next to the old one; two renames replace it.

    Args:
        path: The folder. Missing parent folders are created.
        files: File name -> content.
    """
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{target} is a file, not a folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    recover(target)
    new = Path(tempfile.mkdtemp(prefix=f".{target.name}.new-", dir=target.parent))
    try:
        for name, content in files.items():
            _write(new / name, content)
        new.chmod(0o755)
        sync_folder(new)
        old = _old(target)
        if target.exists():
            os.rename(target, old)
        os.rename(new, target)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        recover(target)
        raise
    sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def find_folder(path: str | os.PathLike[str]) -> Path:
    """Return where the content of a folder is.

    That is the path itself or, after a crash between the two renames, the old folder next to it.
    """
    target = Path(path)
    return target if target.exists() or not _old(target).exists() else _old(target)


def recover(target: Path) -> None:
    """Clean up after an interrupted write: restore the old folder if the new one is missing."""
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
