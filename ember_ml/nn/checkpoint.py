"""Checkpoints: models saved in folders, which any backend can load.

A checkpoint is a folder with `config.json` (the model's class and config), `model.safetensors` (its
values) and, if it was saved during training, `training.json`, `training.safetensors` and
`history.jsonl`. Processes that train together write their tensors to several files, which
`model.safetensors.index.json` lists. Modules with parts that are no tensors add files of their own
(`Module.extra_files`). `checksums.json` has the checksums of the files.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

from ember_ml._core import checksums, folders, runtime
from ember_ml._core.deferred import SizeLimitError, deferred
from ember_ml._core.errors import ArgumentError, FolderError
from ember_ml._core.files import read_regular
from ember_ml._core.folders import Folder, Kind, Log, open_folder, write_folder
from ember_ml._core.tensor import Tensor
from ember_ml._core.version import VERSION
from ember_ml.backend import use_backend
from ember_ml.nn import _extra_files
from ember_ml.nn._extra_files import ExtraFilesError
from ember_ml.nn._replacement import replace, replacements
from ember_ml.nn._tensor_files import CheckpointError as CheckpointError
from ember_ml.nn._tensor_files import Place, TensorFiles, open_tensors, read_file, tensors_to_bytes
from ember_ml.nn._tensor_files import read_tensors as read_tensors
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Variable
from ember_ml.nn.state_dict import check_file, replace_values, saved_variables

M = TypeVar("M", bound=Module)
PathLike = str | os.PathLike[str]
Extra = Mapping[str, Mapping[str, bytes]]
"""Dotted name of a module -> its extra files."""
FORMAT = 1
WEIGHTS = "model.safetensors"
PARTIAL = "_partial"
"""Attribute of modules whose parameters are parts: why they cannot be saved alone."""
PACKING = 8
"""Largest ratio between the memory of float32 weights and of the integers that replace them."""
SPARE = 64 << 20
"""Bytes that a constructor may use beyond twice the size of the file, for tables and masks."""


def save(
    model: Module,
    path: PathLike,
    *,
    training: tuple[Mapping[str, Any], Mapping[str, Tensor]] | None = None,
    log: Log | None = None,
) -> None:
    """Write a model to a folder; an existing checkpoint is replaced atomically.

    Other files in the folder are not touched. The old checkpoint can be read until the new one is
    complete, even after a crash. Processes that save to one folder wait for each other.

    Args:
        model: The model. If its class is not registered, or if it holds functions or unregistered
            modules, `load` needs `into`.
        path: The folder, or a link to it.
        training: State of a trainer: plain data, and tensors by name.
        log: Append-only file of the trainer that the save extends.

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
    if (reason := model.__dict__.get(PARTIAL)) is not None:
        raise CheckpointError(str(reason))
    files = {**about_files(model), WEIGHTS: tensors_to_bytes(saved_variables(model))}
    if training is not None:
        data, tensors = training
        files["training.json"] = to_json(data)
        files["training.safetensors"] = tensors_to_bytes(tensors)
    try:
        write_folder(path, files, KIND, log)
    except FolderError as error:
        raise CheckpointError(str(error)) from None


def about_files(model: Module) -> dict[str, bytes]:
    """Return the files of a checkpoint that describe a model, without its values.

    Args:
        model: The model.
    """
    about = {
        "format": FORMAT,
        "ember_ml": VERSION,
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "config": config_dict(model),
    }
    if replaced := replacements(model):
        configs = {name: config_dict(module) for name, module in replaced.items()}
        about["replaced"] = configs
        about["config"] = None if None in configs.values() else about["config"]
    extra, owners = _extra(model)
    if owners:
        about["files"] = owners
    return {"config.json": to_json(about), **extra}


def check_target(model: Module, path: PathLike) -> None:
    """Raise an error if saving a model to a folder would overwrite files that no save wrote.

    Args:
        model: The model.
        path: The folder. It need not exist.
    """
    folders.check_target(path, KIND, _extra(model)[0])


def _extra(model: Module) -> tuple[dict[str, bytes], dict[str, list[str]]]:
    try:
        return _extra_files.collect(model, (*_FILES, checksums.NAME))
    except ExtraFilesError as error:
        raise CheckpointError(str(error)) from None


def _is_earlier_checkpoint(folder: Path) -> bool:
    """Return whether a folder without checksums is a checkpoint of an earlier version."""
    return {"format", "ember_ml", "class"} <= _about(folder).keys()


def _extra_names(folder: Path) -> frozenset[str]:
    """Return the names of the extra files that `config.json` lists."""
    owners = _about(folder).get("files", {})
    return frozenset(filter(checksums.is_file_name, owners if isinstance(owners, dict) else ()))


def _about(folder: Path) -> dict[str, Any]:
    """Return the content of `config.json`; empty if it cannot be read."""
    try:
        about = json.loads(read_regular(folder / "config.json"))
    except (OSError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


_FILES = (
    "config.json",
    "model.safetensors",
    "training.json",
    "training.safetensors",
    "history.jsonl",
)
KIND = Kind(
    "checkpoint", "an Ember checkpoint", frozenset(_FILES), _is_earlier_checkpoint, _extra_names
)


def config_dict(model: Module) -> dict[str, Any] | None:
    """Return the config of a model as plain data; None if it cannot be written.

    Args:
        model: The model.
    """
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
    with open_checkpoint(path) as folder:
        about = read_json(folder, "config.json")
        if about.get("format") != FORMAT:
            raise CheckpointError(
                f"{folder.path / 'config.json'}: the checkpoint has format "
                f"{about.get('format')!r:.60}; this version of Ember ML reads format {FORMAT}"
            )
        extra = _read_extra(folder, about.get("files", {}))
        with open_tensors(folder, WEIGHTS) as file:
            try:
                if into is not None:
                    return _load_into(into, folder, file, extra)
                return _load_new(folder, about, file, backend, extra)
            except ExtraFilesError as error:
                raise CheckpointError(f"{folder.path}: {error}") from error.__cause__


def _read_extra(folder: Folder, owners: object) -> dict[str, dict[str, bytes]]:
    """Return the extra files of a checkpoint: dotted name of the module -> its files."""
    files: dict[str, dict[str, bytes]] = {}
    for name, owner in owners.items() if isinstance(owners, dict) else [("", owners)]:
        match owner:
            case [str(module), str(own)] if checksums.is_file_name(name):
                files.setdefault(module, {})[own] = read_file(folder, name)
            case _:
                raise CheckpointError(
                    f"{folder.path / 'config.json'}: files must map names of files in the folder "
                    f"to [module, name], not {name!r:.80} to {owner!r:.80}"
                )
    return files


@contextlib.contextmanager
def open_checkpoint(path: PathLike) -> Iterator[Folder]:
    """Open the folder of a checkpoint for reading.

    Args:
        path: The folder.
    """
    try:
        with open_folder(path) as folder:
            yield folder
    except FolderError as error:
        raise CheckpointError(str(error)) from None


def _load_into(model: Module, folder: Folder, file: TensorFiles, extra: Extra) -> Module:
    """Load files and values into a model; if one does not fit, nothing is changed."""
    if type(model).load_state_dict is not Module.load_state_dict:  # it may rename values
        with _extra_files.loaded(model, extra):
            return model.load_state_dict(file.read_all())
    variables = saved_variables(model)
    check_file(type(model).__name__, variables, file.tensors)
    places = {name: (x.backend, x.dtype.name, x.device) for name, x in variables.items()}
    values = file.read(places)
    with _extra_files.loaded(model, extra):
        replace_values(variables, values)
    return model


def _load_new(
    folder: Folder,
    about: Mapping[str, Any],
    file: TensorFiles,
    backend: str | None,
    extra: Extra,
) -> Module:
    """Create the model of a checkpoint without initial values, and load files and values into it.

    The values keep the dtypes of the file, if the backend has them.
    """
    limit = 2 * file.size * (PACKING if about.get("replaced") else 1) + SPARE
    with use_backend(backend or runtime.active()):
        with deferred(limit, len(file.tensors)) as deferral:
            model = _create(folder, about)
        if type(model).load_state_dict is not Module.load_state_dict:  # it may rename values
            return _load_into(_create(folder, about), folder, file, extra)
        variables = saved_variables(model)
        check_file(type(model).__name__, variables, file.tensors)
        places = {name: _place(x, file.tensors[name].dtype) for name, x in variables.items()}
        values = file.read(places)
        if any(deferral.is_placeholder(x) for x in model.buffers() if not x.persistent):
            model = _create(folder, about)  # it draws values that are not saved
    with _extra_files.loaded(model, extra):
        replace_values(saved_variables(model), values)
    return model


def _place(variable: Variable, dtype: str) -> Place:
    """Return where to load a variable: in the dtype of the file, if the backend has it."""
    has = dtype in runtime.LOADED[variable.backend].DTYPES
    return variable.backend, dtype if has else variable.dtype.name, variable.device


def _create(folder: Folder, about: Mapping[str, Any]) -> Module:
    """Return the model that config.json describes, on the active backend."""
    from ember_ml.configs import Config, ConfigError
    from ember_ml.configs.errors import below

    source = folder.path / "config.json"
    if about.get("config") is None:
        raise CheckpointError(
            f"{source}: {about.get('class')!s:.200} was saved without a config: it is not "
            "registered, holds an unregistered class or function, or uses one module in two "
            "places; create the model and pass it as into=, or register the classes with @register"
        )
    try:
        model = Config.from_dict(about["config"]).create()
        _replace(model, about.get("replaced", {}))
    except ConfigError as error:
        raise ConfigError(str(source), below(error, "config")) from None
    except SizeLimitError as error:
        raise CheckpointError(
            f"{source} describes a larger model than {WEIGHTS} holds: {error}; restore the files, "
            "or create the model and pass it as into="
        ) from None
    except Exception as error:  # constructors of any class run here
        raise CheckpointError(
            f"{source}: the model cannot be created: {type(error).__name__}: {error!s:.500}"
        ) from error
    if not isinstance(model, Module):
        raise CheckpointError(
            f"{source}: the config describes a {type(model).__name__}, not a model"
        )
    return model


def _replace(model: Module, configs: Any) -> None:
    """Replace submodules by those that the configs describe, such as quantized layers."""
    from ember_ml.configs import Config

    if not isinstance(configs, dict) or not all(
        isinstance(each, dict) for each in configs.values()
    ):
        raise ArgumentError("replaced must map names of modules to configs")
    names = {name for name, _ in model.named_modules()} if configs else set()
    if unknown := sorted(configs.keys() - names):
        raise ArgumentError(f"{type(model).__name__} has no module {unknown[0]!r:.100} to replace")
    modules = {name: Config.from_dict(config).create() for name, config in configs.items()}
    for name, module in modules.items():
        if not isinstance(module, Module):
            raise ArgumentError(f"{name} must be replaced by a module, not {module!r:.60}")
    replace(model, modules)


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


def to_json(data: object) -> bytes:
    """Return the content of a JSON file of a checkpoint."""
    return (json.dumps(data, indent=2) + "\n").encode()
