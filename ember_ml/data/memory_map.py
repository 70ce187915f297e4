"""Datasets in files that are read only where they are touched."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ember_ml._core.convert import as_dtype
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import DTypeLike
from ember_ml.data import host_arrays
from ember_ml.data.arrays import Columns
from ember_ml.data.conversion import to_host
from ember_ml.data.errors import DataFileError

PathLike: TypeAlias = str | os.PathLike[str]


class MemoryMappedDataset(Columns):
    """Arrays in files; a batch reads its own rows alone, however large the files.

    Args:
        path: an .npy file (an example is a row), a folder of .npy files (an example is a dict by
            the files' names), or a sequence or dict of .npy files.
        dtype: of a file of nothing but numbers, in C order; together with `shape`.
        shape: of that file; the first length may be -1: as many as there are.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> arrays = {"x": [[1.0, 2.0], [3.0, 4.0]], "y": [0, 1]}
        >>> dataset = MemoryMappedDataset.create(f"{folder.name}/train", arrays)
        >>> dataset.batch([1])["x"].tolist()
        [[3.0, 4.0]]
        >>> folder.cleanup()
    """

    def __init__(
        self,
        path: PathLike | Sequence[PathLike] | Mapping[str, PathLike],
        *,
        dtype: DTypeLike | None = None,
        shape: Sequence[int] | None = None,
    ) -> None:
        if (dtype is None) != (shape is None):
            raise ArgumentError(
                f"MemoryMappedDataset: a raw file needs dtype and shape together, not dtype={dtype}"
                f" and shape={shape}; an .npy file needs neither"
            )
        self.files = _files(path)
        self._raw: tuple[str, tuple[int, ...]] | None = None
        if dtype is not None and shape is not None:
            self._raw = as_dtype(dtype).name, _raw_shape(shape)
            if not isinstance(self.files, Path):
                raise ArgumentTypeError(
                    f"MemoryMappedDataset: dtype and shape are for one raw file, not {path!r}"
                )
        self._open()

    def _open(self) -> None:
        files = self.files
        if self._raw is not None:
            self._set(host_arrays.open_raw(files, *self._raw))
        elif isinstance(files, dict):
            self._set({name: host_arrays.open_npy(file) for name, file in files.items()})
        elif isinstance(files, tuple):
            self._set(tuple([host_arrays.open_npy(file) for file in files]))
        else:
            self._set(host_arrays.open_npy(files))

    # To another process go the names of the files, not what they hold.
    def __getstate__(self) -> dict[str, Any]:
        return {"files": self.files, "_raw": self._raw}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    @classmethod
    def create(cls, path: PathLike, data: Any, *, overwrite: bool = False) -> MemoryMappedDataset:
        """Write arrays and open them: all of it appears under `path` at once, or nothing.

        Args:
            path: a name ending in .npy for one array, or a folder for a dict of arrays.
            data: an array, a dict of arrays, or an iterator of such chunks, to be joined along
                the first axis; of an iterator no more than a chunk is held in memory.
            overwrite: replace what is there; else that is an error.
        """
        target = Path(path).absolute()
        if not overwrite and target.exists():
            raise DataFileError(f"{target} exists; overwrite=True replaces it")
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            _write(temporary, data if isinstance(data, Iterator) else iter([data]), target)
            _replace(temporary, target)
        finally:
            _remove(temporary)
        return cls(target)


def _files(path: Any) -> Any:
    """One path, a tuple of them or a dict, all absolute and there."""
    if isinstance(path, Mapping):
        return {str(name): _existing(file) for name, file in path.items()}
    if isinstance(path, Sequence) and not isinstance(path, str):
        return tuple([_existing(file) for file in path])
    found = _existing(path)
    if not found.is_dir():
        return found
    files = {file.stem: file for file in sorted(found.glob("*.npy"))}
    if not files:
        raise DataFileError(f"MemoryMappedDataset: the folder {found} holds no .npy file")
    return files


def _existing(path: PathLike) -> Path:
    found = Path(path).absolute()
    if not found.exists():
        raise DataFileError(f"MemoryMappedDataset: there is no file or folder {found}")
    return found


def _raw_shape(shape: Sequence[int]) -> tuple[int, ...]:
    lengths = tuple(int(length) for length in shape)
    if not lengths or lengths[0] < -1 or any(length < 0 for length in lengths[1:]):
        raise ArgumentError(
            f"MemoryMappedDataset: shape must be lengths, the first of them or -1 that of the "
            f"examples, not {shape!r}"
        )
    return lengths


def _write(path: Path, chunks: Iterator[Any], target: Path) -> None:
    """The chunks as a file, or as a folder of files where they are dicts."""
    writers: dict[str | None, host_arrays.NpyWriter] = {}
    with contextlib.ExitStack() as stack:
        for chunk in chunks:
            named = chunk if isinstance(chunk, dict) else {None: chunk}
            if not writers:
                for name in named:
                    writers[name] = host_arrays.NpyWriter(_file(path, name, target))
                    stack.callback(writers[name].file.close)
            if set(named) != set(writers):
                raise ArgumentError(
                    f"MemoryMappedDataset.create: a chunk of {list(named)} follows one of "
                    f"{list(writers)}"
                )
            for name, array in named.items():
                writers[name].write(to_host(array))
        if not writers:
            raise ArgumentError("MemoryMappedDataset.create: there is no array to write")
        for writer in writers.values():
            writer.finish()


def _file(path: Path, name: str | None, target: Path) -> Path:
    if (name is None) != (target.suffix == ".npy"):
        raise ArgumentError(
            f"MemoryMappedDataset.create: one array goes to a name ending in .npy and a dict of "
            f"arrays to a folder, not to {str(target)!r}"
        )
    if name is None:
        return path
    if not isinstance(name, str) or Path(name).name != name:
        raise ArgumentError(f"MemoryMappedDataset.create: {name!r} is no name for a file")
    path.mkdir(exist_ok=True)
    return path / f"{name}.npy"


def _replace(temporary: Path, target: Path) -> None:
    if not target.is_dir():
        temporary.replace(target)
        return
    old = temporary.with_suffix(".old")  # a folder cannot be put over one that is not empty
    target.replace(old)
    temporary.replace(target)
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
