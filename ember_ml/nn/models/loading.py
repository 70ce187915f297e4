"""Loading of models from checkpoints of Ember ML and of transformers."""

from __future__ import annotations

import json
import os
from typing import TypeVar, overload

from ember_ml._core.errors import FolderError
from ember_ml._core.files import read_regular
from ember_ml._core.folders import find_folder
from ember_ml.nn import checkpoint
from ember_ml.nn.module import Module

M = TypeVar("M", bound=Module)
PathLike = str | os.PathLike[str]


@overload
def load(path: PathLike, *, backend: str | None = None, into: None = None) -> Module: ...
@overload
def load(path: PathLike, *, backend: str | None = None, into: M) -> M: ...
def load(path: PathLike, *, backend: str | None = None, into: Module | None = None) -> Module:
    """Return the model saved in a folder, by any backend or by transformers.

    A folder that transformers' `save_pretrained` wrote is converted; see
    `ember_ml.nn.models.convert.convert` for the families.

    Args:
        path: The folder.
        backend: Backend of the model. Default: the active backend.
        into: Model to load the values into, instead of creating one.

    Raises:
        CheckpointError: If the folder is not a checkpoint, or the model cannot be created.
        ConversionError: If transformers wrote the folder, and its model is not supported.
        StateDictError: If the values do not fit the model.

    Example:
        >>> import tempfile
        >>> from ember_ml.nn.models.convert import export
        >>> folder = tempfile.mkdtemp()
        >>> export(nn.models.MambaModel(64, 16), f"{folder}/mamba")
        >>> type(ember_ml.load(f"{folder}/mamba")).__name__
        'MambaModel'
    """
    if not _is_from_transformers(path):
        return checkpoint.load(path, backend=backend, into=into)
    from ember_ml.nn.models.convert import convert

    if into is None:
        return convert(path, backend=backend)
    into.load_state_dict(convert(path, backend=backend).state_dict())
    return into


def _is_from_transformers(path: PathLike) -> bool:
    """Return whether config.json names a model type, as transformers writes it."""
    try:
        about = json.loads(read_regular(find_folder(path) / "config.json"))
    except (OSError, ValueError, RecursionError, FolderError):
        return False
    return isinstance(about, dict) and "model_type" in about and "format" not in about
