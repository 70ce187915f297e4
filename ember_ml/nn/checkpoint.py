"""Checkpoints: models saved in folders, which any backend can load.

A checkpoint is a folder with `config.json` (the model's class and config), `model.safetensors` (its
values) and, if it was saved during training, `training.json`, `training.safetensors` and
`history.jsonl`. `checksums.json` has the checksums of the files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import EmberError, FolderError
from ember_ml._core.folders import Folder, Kind, Log, open_folder, write_folder
from ember_ml._core.tensor import Tensor
from ember_ml._core.types import NativeArray
from ember_ml._core.version import VERSION
from ember_ml.backend import use_backend
from ember_ml.nn.module import Module
from ember_ml.nn.state_dict import saved_variables

M = TypeVar("M", bound=Module)
PathLike = str | os.PathLike[str]
FORMAT = 1


class CheckpointError(EmberError, ValueError):
    """A folder that is not a checkpoint, or holds another kind of model."""


def save(
    model: Module,
    path: PathLike,
    *,
    training: tuple[Mapping[str, Any], Mapping[str, Tensor]] | None = None,
    log: Log | None = None,
) -> None:
    """Write a model to a folder; an existing checkpoint is replaced atomically.

    Other files in the folder stay as they are. The old checkpoint can be read until the new one is
    complete, also after a crash. Processes that save to one folder wait for each other.

    Args:
        model: The model. If its class is not registered, or if it holds functions or unregistered
            modules, `load` needs `into`.
        path: The folder, or a link to it.
        training: State of a trainer: plain data, and tensors by name.
        log: File of the trainer that grows from save to save.

    Raises:
        CheckpointError: If the folder has a file that no checkpoint wrote where the save writes
            one, such as a `config.json` of another program.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> model = nn.Sequential(nn.layers.Dense(4, 2))
        >>> ember_ml.save(model, f"{folder}/model")
        >>> x = ops.ones((3, 4))
        >>> bool((ember_ml.load(f"{folder}/model")(x) == model(x)).all())
        True
    """
    about = {
        "format": FORMAT,
        "ember_ml": VERSION,
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "config": _config(model),
    }
    files = {
        "config.json": _json(about),
        "model.safetensors": tensors_to_bytes(saved_variables(model)),
    }
    if training is not None:
        data, tensors = training
        files["training.json"] = _json(data)
        files["training.safetensors"] = tensors_to_bytes(tensors)
    try:
        write_folder(path, files, KIND, log)
    except FolderError as error:
        raise CheckpointError(str(error)) from None


def _is_earlier_checkpoint(folder: Path) -> bool:
    """Return whether a folder without checksums is a checkpoint of an earlier version."""
    try:
        about = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(about, dict) and {"format", "ember_ml", "class"} <= about.keys()


_FILES = (
    "config.json",
    "model.safetensors",
    "training.json",
    "training.safetensors",
    "history.jsonl",
)
KIND = Kind("checkpoint", "an Ember checkpoint", frozenset(_FILES), _is_earlier_checkpoint)


def _config(model: Module) -> dict[str, Any] | None:
    """Return the model's config as plain data, or None if it cannot be written."""
    from ember_ml.configs import ConfigError

    if model.config is None or _shares_modules(model):
        return None
    try:
        return dict(model.config.to_dict())
    except ConfigError:  # it holds a module or a function without a registered name
        return None


def _shares_modules(module: Module) -> bool:
    """Return whether one module is used in two places, which a config cannot express."""
    seen: set[int] = set()

    def is_shared(module: Module) -> bool:
        if id(module) in seen:
            return bool(saved_variables(module))
        seen.add(id(module))
        return any(is_shared(child) for child in module.children())

    return is_shared(module)


@overload
def load(path: PathLike, *, backend: str | None = None, into: None = None) -> Module: ...
@overload
def load(path: PathLike, *, backend: str | None = None, into: M) -> M: ...
def load(path: PathLike, *, backend: str | None = None, into: Module | None = None) -> Module:
    """Return the model saved in a folder, by any backend.

    Args:
        path: The folder.
        backend: Backend of the model. Default: the active backend.
        into: Model to load the values into, instead of creating one.

    Raises:
        CheckpointError: If the folder is not a checkpoint, or the model cannot be created.
        StateDictError: If the values do not fit the model.
    """
    with open_folder(path) as folder:
        about = read_json(folder, "config.json")
        if about.get("format") != FORMAT:
            raise CheckpointError(
                f"{path}: the checkpoint has format {about.get('format')!r}; this version of Ember "
                f"ML reads format {FORMAT}"
            )
        contents = _contents(folder, "model.safetensors")
    model = into
    if model is None:
        model = _create(path, about, backend)
        _set_dtypes(model, {name: dtype for name, (_, dtype) in contents.items()})
    model.load_state_dict({name: array for name, (array, _) in contents.items()})
    return model


def _create(path: PathLike, about: Mapping[str, Any], backend: str | None) -> Module:
    from ember_ml.configs import Config

    if about.get("config") is None:
        raise CheckpointError(
            f"{path}: {about.get('class')} was saved without a config: it is not registered, holds "
            "an unregistered class or function, or uses one module in two places; create the model "
            "and pass it as into=, or register the classes with @register"
        )
    with use_backend(backend or runtime.active()):
        model = Config.from_dict(about["config"]).create()
    if not isinstance(model, Module):
        raise CheckpointError(f"{path}: the config is of a {type(model).__name__}, not of a model")
    return model


def read_file(folder: Folder, name: str) -> bytes:
    """Return the content of a file of a checkpoint, compared with its checksum."""
    try:
        return folder.read(name)
    except FileNotFoundError:
        problem = f"has no {name}" if folder.path.is_dir() else "does not exist"
        raise CheckpointError(
            f"{folder.path} {problem}; a checkpoint is a folder with {name}"
        ) from None
    except (OSError, FolderError) as error:
        raise CheckpointError(f"{folder.path / name} cannot be read: {error}") from None


def read_json(folder: Folder, name: str) -> dict[str, Any]:
    """Return the content of a JSON file of a checkpoint."""
    try:
        data = json.loads(read_file(folder, name))
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{folder.path / name} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{folder.path / name} must hold a JSON object")
    return data


def read_tensors(folder: Folder, name: str) -> dict[str, Tensor]:
    """Return the tensors in a safetensors file of a checkpoint, on the active backend."""
    return {
        key: convert_to_tensor(array, dtype=dtype)
        for key, (array, dtype) in _contents(folder, name).items()
    }


def _set_dtypes(model: Module, dtypes: Mapping[str, str]) -> None:
    """Convert variables to the dtypes they were saved in, if their backend has them."""
    for name, variable in saved_variables(model).items():
        wanted = dtypes.get(name, variable.dtype.name)
        has = wanted in runtime.LOADED[variable.backend].DTYPES
        if has and wanted != variable.dtype.name:
            variable.become(convert_to_tensor(variable, dtype=wanted, backend=variable.backend))


def _contents(folder: Folder, name: str) -> dict[str, tuple[NativeArray, str]]:
    from ember_ml._core import array_files

    content = read_file(folder, name)
    try:
        return array_files.deserialize(content)
    except Exception as error:  # safetensors raises its own classes
        raise CheckpointError(f"{folder.path / name} is not a safetensors file: {error}") from None


def tensors_to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the content of a safetensors file with tensors."""
    from ember_ml._core import array_files

    arrays = {
        name: (runtime.LOADED[x.backend].to_portable(x.native), x.dtype.name)
        for name, x in tensors.items()
    }
    return array_files.serialize(arrays, {"format": "ember_ml"})


def _json(data: object) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
