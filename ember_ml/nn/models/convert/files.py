"""Files of a checkpoint of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeGuard

from ember_ml._core import runtime
from ember_ml._core.files import read_regular
from ember_ml._core.safetensors_files import SafetensorsError
from ember_ml._core.tensor import Tensor
from ember_ml._core.types import NativeArray
from ember_ml.nn.models.convert.errors import ConversionError

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

Arrays = dict[str, tuple[NativeArray, str]]
"""Name -> host array and the name of its dtype."""


def read_json(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file that holds an object."""
    try:
        data = json.loads(read_regular(path))
    except FileNotFoundError:
        raise ConversionError(
            f"{path.parent} is not a checkpoint of transformers", [f"there is no {path.name}"]
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConversionError(f"{path} cannot be read", [str(error)]) from None
    if not isinstance(data, dict):
        raise ConversionError(f"{path} cannot be read", ["it must hold a JSON object"])
    return data


def read_arrays(folder: Path) -> Arrays:
    """Return the tensors of a checkpoint, from one file or several shards."""
    if (folder / WEIGHTS).exists():
        return _contents(folder / WEIGHTS)
    if not (folder / INDEX).exists():
        raise ConversionError(
            f"{folder} has no weights in a supported format",
            [f"there is neither {WEIGHTS} nor {INDEX}; transformers' save_pretrained writes them"],
        )
    return _sharded(folder)


def _sharded(folder: Path) -> Arrays:
    """Return the tensors of all shards that the index names."""
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not all(_is_name(file) for file in places.values()):
        raise ConversionError(
            f"{folder / INDEX} cannot be read",
            ["its weight_map must map each tensor to the name of a file in the folder"],
        )
    contents = {file: _contents(folder / file) for file in sorted(set(places.values()))}
    missing = [
        f"{file} lacks {name}" for name, file in places.items() if name not in contents[file]
    ]
    if missing:
        raise ConversionError(f"the files of {folder} do not fit {INDEX}", missing)
    return {name: contents[file][name] for name, file in places.items()}


def _is_name(file: object) -> TypeGuard[str]:
    return isinstance(file, str) and Path(file).name == file


def _contents(path: Path) -> Arrays:
    from ember_ml._core import array_files

    try:
        return array_files.deserialize(path)
    except FileNotFoundError:
        raise ConversionError(
            f"{path.parent} is incomplete", [f"there is no {path.name}"]
        ) from None
    except (OSError, SafetensorsError) as error:
        raise ConversionError(f"{path} cannot be read", [str(error)]) from None


def content(values: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, bytes]:
    """Return the files of a checkpoint by name."""
    from ember_ml._core import array_files

    arrays = {
        name: (runtime.LOADED[x.backend].to_portable(x.native), x.dtype.name)
        for name, x in tensors.items()
    }
    return {
        CONFIG: (json.dumps(values, indent=2) + "\n").encode(),
        WEIGHTS: array_files.serialize(arrays, {"format": "pt"}),
    }
