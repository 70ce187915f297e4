"""The files of a checkpoint of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ember_ml._core import runtime
from ember_ml._core.tensor import Tensor
from ember_ml.nn.models.convert.errors import ConversionError

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

Arrays = dict[str, tuple[Any, str]]
"""By name, arrays of the host, with the dtypes that they stand for."""


def read_json(path: Path) -> dict[str, Any]:
    """A file of keys and values."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConversionError(
            f"{path.parent} is no checkpoint of transformers", [f"there is no {path.name} in it"]
        ) from None
    except (OSError, ValueError) as error:
        raise ConversionError(f"{path} cannot be read", [str(error)]) from None
    if not isinstance(data, dict):
        raise ConversionError(f"{path} cannot be read", ["it holds no keys and values"])
    return data


def read_arrays(folder: Path) -> Arrays:
    """The tensors of a checkpoint, from one file or from several."""
    if (folder / WEIGHTS).exists():
        return _contents(folder / WEIGHTS)
    if not (folder / INDEX).exists():
        raise ConversionError(
            f"{folder} holds no weights that can be read",
            [f"there is neither {WEIGHTS} nor {INDEX}; transformers' save_pretrained writes them"],
        )
    return _sharded(folder)


def _sharded(folder: Path) -> Arrays:
    """The tensors of several files, by what the index says of where each is."""
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not all(_is_name(file) for file in places.values()):
        raise ConversionError(
            f"{folder / INDEX} cannot be read",
            ["its weight_map must give, for each tensor, the name of a file in the folder"],
        )
    contents = {file: _contents(folder / file) for file in sorted(set(places.values()))}
    missing = [
        f"{file} lacks {name}" for name, file in places.items() if name not in contents[file]
    ]
    if missing:
        raise ConversionError(f"the files of {folder} do not fit {INDEX}", missing)
    return {name: contents[file][name] for name, file in places.items()}


def _is_name(file: Any) -> bool:
    return isinstance(file, str) and Path(file).name == file


def _contents(path: Path) -> Arrays:
    from ember_ml._core import array_files

    try:
        return array_files.deserialize(path)
    except FileNotFoundError:
        raise ConversionError(f"{path.parent} is not whole", [f"there is no {path.name}"]) from None
    except Exception as error:  # the library raises classes of its own
        raise ConversionError(f"{path} cannot be read", [repr(error)]) from None


def content(values: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, bytes]:
    """The files of a checkpoint, by name."""
    from ember_ml._core import array_files

    arrays = {
        name: (runtime.LOADED[x.backend].to_portable(x.native), x.dtype.name)
        for name, x in tensors.items()
    }
    return {
        CONFIG: (json.dumps(values, indent=2) + "\n").encode(),
        WEIGHTS: array_files.serialize(arrays, {"format": "pt"}),
    }
