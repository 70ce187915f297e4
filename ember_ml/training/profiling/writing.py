"""Files of a profile in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from ember_ml._core.errors import ArgumentError
from ember_ml._core.files import write_atomically
from ember_ml.training.profiling import chrome
from ember_ml.training.profiling.page import MARK, page
from ember_ml.training.profiling.result import Profile

PAGE, NUMBERS, TRACE = "profile.html", "profile.json", "trace.json"
MARKS = {PAGE: MARK, NUMBERS: chrome.MARK, TRACE: chrome.MARK}
"""What the files of a profile contain, so that they are recognized."""


def write_profile(
    profile: Profile, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write `profile.html`, `profile.json` and `trace.json` into a folder.

    Args:
        profile: The profile.
        folder: The folder. Files of an earlier profile are replaced, other files stay.
        overwrite: Whether to replace files of these names that are not parts of a profile.

    Returns:
        Path of the page.
    """
    target = Path(folder)
    check_folder(target, overwrite)
    contents: dict[str, Callable[[Profile], str]] = {
        TRACE: chrome.trace_json,
        NUMBERS: lambda profile: json.dumps(profile.to_dict(), indent=2) + "\n",
        PAGE: page,
    }
    for name, content in contents.items():
        write_atomically(target / name, content(profile).encode("utf-8", "replace"))
    return target / PAGE


def check_folder(folder: Path, overwrite: bool) -> None:
    """Raise an error if the folder cannot be written, or has files that must not be replaced.

    Args:
        folder: The folder.
        overwrite: Whether any file may be replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"profile: {folder} is a file; choose a folder")
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise ArgumentError(f"profile: {existing} is a file; choose another folder than {folder}")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ArgumentError(f"profile: {existing} is not writable; choose another folder")
    for name, mark in MARKS.items():
        path = folder / name
        if path.is_dir():
            raise ArgumentError(f"profile: {path} is a folder; choose another folder")
        if overwrite or not path.exists():
            continue
        if mark not in path.read_bytes().decode("utf-8", "replace"):
            raise ArgumentError(
                f"profile: {path} exists and is not part of a profile; choose another folder, or "
                "allow to overwrite it"
            )
