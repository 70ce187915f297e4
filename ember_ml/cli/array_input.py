"""Arrays of files, for commands that run a model."""

from __future__ import annotations

from pathlib import Path

from ember_ml._core import array_files
from ember_ml._core.errors import ArgumentError
from ember_ml._core.safetensors_files import SafetensorsError
from ember_ml._core.types import NativeArray


def read_array(option: str, path: Path, name: str) -> NativeArray:
    """Return the array of a .npy, .npz, .safetensors or .csv file.

    Args:
        option: Option of the command, for error messages.
        path: The file. The rows of a .csv file are the first axis; a header line is optional.
        name: Name of the array in a file of several; a file of one needs no name.
    """
    if not path.is_file():
        raise ArgumentError(f"{option}: there is no file {path}")
    if path.suffix == ".npy":
        from ember_ml.data.host_arrays import open_npy

        return open_npy(path)
    if path.suffix == ".csv":
        from ember_ml.data.tables import CSVDataset

        table = CSVDataset(path, None, None, stack=True, header=_numbered_columns(path))
        return table.batch(range(len(table)))
    if path.suffix == ".npz":
        return _choose(option, path, name, array_files.read_npz(path))
    if path.suffix == ".safetensors":
        try:
            contents = array_files.deserialize(path)
        except (OSError, SafetensorsError) as error:
            raise ArgumentError(f"{option}: {error}") from None
        return _choose(option, path, name, {key: array for key, (array, _) in contents.items()})
    raise ArgumentError(f"{option}: {path} must be a .npy, .npz, .safetensors or .csv file")


def _numbered_columns(path: Path) -> list[str] | None:
    """Return names for the columns of a .csv file whose first line has numbers; otherwise None."""
    with path.open(encoding="utf-8", errors="replace") as file:
        cells = file.readline().strip().split(",")
    try:
        list(map(float, cells))
    except ValueError:
        return None
    return [str(at) for at in range(len(cells))]


def _choose(option: str, path: Path, name: str, arrays: dict[str, NativeArray]) -> NativeArray:
    """Return the named array, or the only one."""
    if name in arrays:
        return arrays[name]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    names = ", ".join(arrays) or "none"
    raise ArgumentError(f"{option}: {path} has no array {name!r}; it has {names}")
