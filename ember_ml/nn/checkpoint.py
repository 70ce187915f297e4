"""Models in folders, from which any backend reads them.

A checkpoint is a folder with `config.json` (what the model is), `model.safetensors` (its values)
and, if it was saved in training, `training.json` and `training.safetensors`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import EmberError
from ember_ml._core.folders import find_folder, write_folder
from ember_ml._core.tensor import Tensor
from ember_ml._core.version import VERSION
from ember_ml.backend import use_backend
from ember_ml.nn.module import Module
from ember_ml.nn.state_dict import saved_variables

FORMAT = 1


class CheckpointError(EmberError, ValueError):
    """A folder that is no checkpoint, or one of something else."""


def save(
    model: Module,
    path: str | os.PathLike[str],
    *,
    training: tuple[Mapping[str, Any], Mapping[str, Tensor]] | None = None,
) -> None:
    """Write a model to a folder; a folder that is there is replaced once the new one is whole.

    Args:
        model: a model of registered classes is built anew by `load`; of any other, or one that
            was given functions of yours, `load` needs `into`.
        path: the folder.
        training: what a trainer needs to go on: plain data, and tensors by name.

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
    write_folder(path, files)


def _config(model: Module) -> dict[str, Any] | None:
    """What the model is, if that can be written."""
    from ember_ml.configs import ConfigError

    if model.config is None or _shares(model):
        return None
    try:
        return dict(model.config.to_dict())
    except ConfigError:  # it holds a module or a function that has no name
        return None


def _shares(module: Module) -> bool:
    """Whether one module stands in two places, which a config cannot say."""
    seen: set[int] = set()

    def again(module: Module) -> bool:
        if id(module) in seen:
            return bool(saved_variables(module))
        seen.add(id(module))
        return any(again(child) for child in module.children())

    return again(module)


def load(
    path: str | os.PathLike[str], *, backend: str | None = None, into: Module | None = None
) -> Any:
    """The model that was saved in a folder, from any backend.

    Args:
        path: the folder.
        backend: where to put it; the active backend if not given.
        into: a model to take the values over into, instead of building one.
    """
    folder = find_folder(path)
    about = read_json(folder, "config.json")
    if about.get("format") != FORMAT:
        raise CheckpointError(
            f"{path}: the checkpoint has the format {about.get('format')!r}; this version of "
            f"Ember ML reads {FORMAT}"
        )
    contents = _contents(folder / "model.safetensors")
    model = into
    if model is None:
        model = _build(path, about, backend)
        _take_dtypes(model, {name: dtype for name, (_, dtype) in contents.items()})
    model.load_state_dict({name: array for name, (array, _) in contents.items()})
    return model


def _build(path: Any, about: Mapping[str, Any], backend: str | None) -> Module:
    from ember_ml.configs import Config

    if about.get("config") is None:
        raise CheckpointError(
            f"{path}: the model is of the class {about.get('class')}, which is not registered, or "
            "holds something that is not, or one module in two places; build one and give it as "
            "into=, or register the classes with @register"
        )
    with use_backend(backend or runtime.active()):
        made = Config.from_dict(about["config"]).create()
    if not isinstance(made, Module):
        raise CheckpointError(
            f"{path}: the config is of a {type(made).__name__}, which is no model"
        )
    return made


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A file of a checkpoint, as plain data."""
    try:
        data = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = "has no" if folder.is_dir() else "does not exist: no"
        raise CheckpointError(
            f"{folder} {what} {name}; a checkpoint is a folder with one"
        ) from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder / name} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{folder / name} holds no keys and values")
    return data


def read_tensors(folder: Path, name: str) -> dict[str, Tensor]:
    """The tensors in a file of a checkpoint, on the active backend."""
    return {
        key: convert_to_tensor(array, dtype=dtype)
        for key, (array, dtype) in _contents(folder / name).items()
    }


def _take_dtypes(model: Module, dtypes: Mapping[str, str]) -> None:
    """Give variables the dtypes that they were saved in, where their backend has them."""
    for name, variable in saved_variables(model).items():
        wanted = dtypes.get(name, variable.dtype.name)
        has = wanted in runtime.LOADED[variable.backend].DTYPES
        if has and wanted != variable.dtype.name:
            variable.become(convert_to_tensor(variable, dtype=wanted, backend=variable.backend))


def _contents(path: Path) -> dict[str, tuple[Any, str]]:
    from ember_ml._core import array_files

    try:
        return array_files.deserialize(path)
    except FileNotFoundError:
        raise CheckpointError(f"{path.parent} has no {path.name}") from None
    except Exception as error:  # the library raises classes of its own
        raise CheckpointError(f"{path} is no safetensors file: {error}") from None


def tensors_to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors as the content of a safetensors file."""
    from ember_ml._core import array_files

    arrays = {
        name: (runtime.LOADED[x.backend].to_portable(x._data), x.dtype.name)
        for name, x in tensors.items()
    }
    return array_files.serialize(arrays, {"format": "ember_ml"})


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
