"""The tensors of a checkpoint: one safetensors file, or several that an index lists."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ember_ml._core import checksums, runtime
from ember_ml._core.checksums import Entry
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import EmberError, FolderError
from ember_ml._core.folders import Folder
from ember_ml._core.safetensors_files import (
    Reading,
    SafetensorsError,
    SafetensorsFile,
    TensorInfo,
    host_array,
)
from ember_ml._core.tensor import Tensor, wrap
from ember_ml.backend import devices

INDEX = ".index.json"
"""Ending of the name of a file that lists the files of tensors, as transformers names it."""
Place = tuple[str, str, str]
"""Backend, dtype name and device of a tensor."""
Select = Callable[[str, Tensor], Tensor | None]
"""Function of a name and a tensor that returns what to keep of it; None for nothing."""


class CheckpointError(EmberError, ValueError):
    """A folder that is not a checkpoint, or holds another kind of model."""


class _Part(NamedTuple):
    name: str
    file: SafetensorsFile


class TensorFiles:
    """The open files with the tensors of a checkpoint.

    Args:
        folder: The folder.
        parts: The files.

    Attributes:
        tensors: Name -> description of all tensors.
        size: Size of the files in bytes.
    """

    def __init__(self, folder: Folder, parts: list[_Part]) -> None:
        self._folder = folder
        self._parts = parts
        self.tensors: dict[str, TensorInfo] = {}
        for part in parts:
            self.tensors |= part.file.tensors
        self.size = sum(part.file.size for part in parts)

    def read(self, places: Mapping[str, Place], select: Select | None = None) -> dict[str, Tensor]:
        """Return the tensors after comparing the files with their checksums.

        Args:
            places: Backend, dtype and device of each tensor.
            select: What to keep of each tensor, so that others are not held. Default: all of it.
        """
        values: dict[str, Tensor] = {}
        for name, file in self._parts:
            with file.read() as reading:
                for key, info in reading.tensors():
                    value = _tensor(info, reading, *places[key])
                    kept = value if select is None else select(key, value)
                    if kept is not None:
                        values[key] = kept
            self._folder.compare(name, Entry(file.size, reading.crc32))
        return values

    def read_all(self, select: Select | None = None) -> dict[str, Tensor]:
        """Return the tensors on the active backend, in the dtypes of the file.

        Args:
            select: What to keep of each tensor. Default: all of it.
        """
        backend = runtime.active()
        device = devices.default_device(backend)
        places = {key: (backend, info.dtype, device) for key, info in self.tensors.items()}
        return self.read(places, select)


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


@contextlib.contextmanager
def open_tensors(folder: Folder, name: str) -> Iterator[TensorFiles]:
    """Open the safetensors files of a checkpoint; their data is not read yet.

    Args:
        folder: The folder.
        name: Name of the file if there is one; the index of several files has this name and
            ".index.json".
    """
    places = _index(folder, name) if _is_divided(folder, name) else None
    names = [name] if places is None else sorted(set(places.values()))
    with contextlib.ExitStack() as stack:
        try:
            files = TensorFiles(
                folder, [_Part(each, stack.enter_context(_open(folder, each))) for each in names]
            )
        except FileNotFoundError as error:
            raise _missing(folder, name, error) from None
        except (OSError, SafetensorsError, FolderError) as error:
            raise CheckpointError(str(error)) from None
        if places is not None and places.keys() != files.tensors.keys():
            lost = sorted(places.keys() ^ files.tensors.keys())
            raise CheckpointError(
                f"{folder.path / (name + INDEX)} does not fit the files that it lists: they differ "
                f"in {lost[0]!r:.80}"
            )
        try:
            yield files
        except (OSError, SafetensorsError, FolderError) as error:
            raise CheckpointError(str(error)) from None


def _is_divided(folder: Folder, name: str) -> bool:
    return not folder.file(name).exists() and folder.file(name + INDEX).exists()


def _open(folder: Folder, name: str) -> SafetensorsFile:
    path = folder.file(name)
    folder.compare_size(name, path.stat().st_size)
    return SafetensorsFile(path)


def _missing(folder: Folder, name: str, error: FileNotFoundError) -> CheckpointError:
    missing = str(error.filename).rpartition("/")[2]
    if missing == name:
        return CheckpointError(f"{folder.path} has no {name}")
    return CheckpointError(
        f"{folder.path} has no {missing}, which {name + INDEX} lists; restore it from a backup, or "
        "load another checkpoint"
    )


def _index(folder: Folder, name: str) -> dict[str, str]:
    """Return the file of each tensor."""
    source = folder.path / (name + INDEX)
    try:
        places = json.loads(read_file(folder, name + INDEX))["weight_map"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{source} cannot be read: {error!r}") from None
    if not isinstance(places, dict) or not all(map(checksums.is_file_name, places.values())):
        raise CheckpointError(
            f"{source}: weight_map must map each tensor to the name of a file in the folder"
        )
    return places


def read_tensors(folder: Folder, name: str, select: Select | None = None) -> dict[str, Tensor]:
    """Return tensors of a checkpoint on the active backend.

    Args:
        folder: The folder.
        name: Name of the file; see `open_tensors`.
        select: What to keep of each tensor. Default: all of it.
    """
    with open_tensors(folder, name) as files:
        return files.read_all(select)


def _tensor(info: TensorInfo, reading: Reading, backend: str, dtype: str, device: str) -> Tensor:
    """Return the next tensor of a file, converted if it has another dtype."""
    module = runtime.load(backend)
    if dtype != info.dtype or dtype not in module.DTYPES:
        array = host_array(info, reading)
        return convert_to_tensor(array, dtype=dtype, device=device, backend=backend)
    native = module.read_array(reading.fill, info.num_elements, module.DTYPES[dtype], device)
    return wrap(native.reshape(info.shape), backend)


def tensors_to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the content of a safetensors file with tensors."""
    from ember_ml._core import array_files

    arrays = {
        name: (runtime.LOADED[x.backend].to_portable(x.native), x.dtype.name)
        for name, x in tensors.items()
    }
    return array_files.serialize(arrays, {"format": "ember_ml"})
