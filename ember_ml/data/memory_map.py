"""Datasets in memory-mapped files."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ember_ml._core import tree
from ember_ml._core.convert import as_dtype
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import DTypeLike
from ember_ml.data import host_arrays
from ember_ml.data.arrays import Columns
from ember_ml.data.conversion import to_host
from ember_ml.data.errors import DataFileError
from ember_ml.data.files import PathLike

Paths: TypeAlias = PathLike | Sequence[PathLike] | Mapping[str, PathLike]
Files: TypeAlias = Path | tuple[Path, ...] | dict[str, Path]


class MemoryMappedDataset(Columns):
    """Dataset of arrays in memory-mapped files: a batch reads only its rows.

    Args:
        path: An .npy file (an example is a row), a folder of .npy files (an example is a dict with
            the file names as keys), or a sequence or dict of .npy files.
        dtype: Data type of a raw file of numbers in C order; requires `shape`.
        shape: Shape of the raw file; if the first length is -1, it follows from the file size.

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
        path: Paths,
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
                    f"MemoryMappedDataset: dtype and shape describe one raw file, not {path!r}"
                )
        self._open()

    def _open(self) -> None:
        if self._raw is not None and isinstance(self.files, Path):
            self._set(host_arrays.open_raw(self.files, *self._raw))
        else:
            self._set(tree.map_leaves(host_arrays.open_npy, self.files))

    # Pickle the names of the files, not their contents.
    def __getstate__(self) -> dict[str, object]:
        return {"files": self.files, "_raw": self._raw}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._open()

    @classmethod
    def create(
        cls, path: PathLike, data: object, *, overwrite: bool = False
    ) -> MemoryMappedDataset:
        """Write arrays atomically and open them as a dataset.

        Args:
            path: A name ending in .npy for one array, or a folder for a dict of arrays.
            data: An array, a dict of arrays, or an iterator of such chunks, which are concatenated
                along the first axis. Only one chunk is in memory at a time.
            overwrite: Whether to replace existing files. By default they raise an error. A folder
                that also has files other than .npy is not replaced.
        """
        target = Path(path).absolute()
        if not overwrite and target.exists():
            raise DataFileError(f"{target} exists; pass overwrite=True to replace it")
        _check_replaceable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            _write(temporary, data if isinstance(data, Iterator) else iter([data]), target)
            _replace(temporary, target)
        finally:
            _remove(temporary)
        return cls(target)


def _files(path: Paths) -> Files:
    """Return one path, a tuple or a dict of paths; all are absolute and exist."""
    if isinstance(path, Mapping):
        return {str(name): _existing(file) for name, file in path.items()}
    if isinstance(path, Sequence) and not isinstance(path, str):
        return tuple([_existing(file) for file in path])
    file = _existing(path)
    if not file.is_dir():
        return file
    files = {entry.stem: entry for entry in sorted(file.glob("*.npy"))}
    if not files:
        raise DataFileError(f"MemoryMappedDataset: the folder {file} contains no .npy file")
    return files


def _existing(path: PathLike) -> Path:
    file = Path(path).absolute()
    if not file.exists():
        raise DataFileError(f"MemoryMappedDataset: there is no file or folder {file}")
    return file


def _raw_shape(shape: Sequence[int]) -> tuple[int, ...]:
    lengths = tuple(int(length) for length in shape)
    if not lengths or lengths[0] < -1 or any(length < 0 for length in lengths[1:]):
        raise ArgumentError(
            "MemoryMappedDataset: shape must consist of lengths, the first of them the number of "
            f"examples or -1, not {shape!r}"
        )
    return lengths


def _write(path: Path, chunks: Iterator[object], target: Path) -> None:
    """Write the chunks as a file, or as a folder of files if they are dicts."""
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
                    "MemoryMappedDataset.create: all chunks must have the same keys; got "
                    f"{list(named)} after {list(writers)}"
                )
            for name, array in named.items():
                writers[name].write(to_host(array))
        if not writers:
            raise ArgumentError("MemoryMappedDataset.create: data must contain at least one array")
        for writer in writers.values():
            writer.finish()


def _file(path: Path, name: str | None, target: Path) -> Path:
    if (name is None) != (target.suffix == ".npy"):
        raise ArgumentError(
            "MemoryMappedDataset.create: the path must end in .npy for one array, and be a folder "
            f"for a dict of arrays, not {str(target)!r}"
        )
    if name is None:
        return path
    if not isinstance(name, str) or Path(name).name != name:
        raise ArgumentError(f"MemoryMappedDataset.create: {name!r} is not a valid file name")
    path.mkdir(exist_ok=True)
    return path / f"{name}.npy"


def _check_replaceable(target: Path) -> None:
    """Raise an error if a folder to replace has files that no dataset wrote."""
    others = [] if not target.is_dir() else [p for p in target.iterdir() if p.suffix != ".npy"]
    if others:
        raise DataFileError(
            f"{target} also contains {others[0].name}, which is not an array of a dataset; use "
            "another folder, or move the file"
        )


def _replace(temporary: Path, target: Path) -> None:
    if not target.is_dir():
        temporary.replace(target)
        return
    old = temporary.with_suffix(".old")  # a nonempty folder cannot be replaced by a rename
    target.replace(old)
    temporary.replace(target)
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
