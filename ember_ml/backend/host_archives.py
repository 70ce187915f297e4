"""Arrays in NumPy's archives."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import numpy as np

from ember_ml._core.errors import ArgumentError


def read_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays in an .npz file, by name; what would need code to be run is refused."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, AttributeError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ArgumentError(f"{path} is no .npz file of numbers: {error}") from None
