"""NumPy functions for datasets: random generators, indices, rows and files."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ember_ml._core import host
from ember_ml._core.dtype import DTYPES, promote
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError

ORDER, SPLIT, EXAMPLE, TRANSFORM = range(4)
"""Purposes of random numbers: one seed has an independent stream for each."""


def generator(seed: int, purpose: int, *numbers: int) -> np.random.Generator:
    """Return a random generator that depends only on the arguments.

    Args:
        seed: Seed.
        purpose: `ORDER`, `SPLIT`, `EXAMPLE` or `TRANSFORM`.
        *numbers: Numbers of the epoch, the example or both. Default: 0.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose, *(numbers or (0,))))
    return np.random.Generator(np.random.PCG64(sequence))


def array_of(data: object) -> np.ndarray:
    """Return numbers as a host array; Python numbers become float32, int64 or bool.

    Args:
        data: Array, nested lists or a number.
    """
    array, name = host.parse(data, None)
    return array if array.dtype.name == name else array.astype(name)


def indices_of(data: np.ndarray | Sequence[int], length: int, where: str) -> np.ndarray:
    """Return indices into `length` examples as a host array of nonnegative integers.

    Args:
        data: Indices; negative ones count from the end.
        length: Number of examples.
        where: Name of the class in errors.
    """
    array = np.asarray(data)
    if array.size == 0:
        array = array.astype(np.int64).reshape(-1)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ArgumentTypeError(
            f"{where}: the indices must be a sequence of integers, not {data!r:.60}"
        )
    invalid = array[(array < -length) | (array >= length)]
    if invalid.size:
        raise ArgumentError(f"{where}: index {invalid[0]} is out of range for {length} examples")
    return np.where(array < 0, array + length, array).astype(np.int64)


def take(array: np.ndarray, indices: np.ndarray | Sequence[int]) -> np.ndarray:
    """Return a copy of the rows at the indices.

    Args:
        array: Array to read.
        indices: Indices along the first axis.
    """
    flags = array.flags
    # `take` would first copy the whole of any other array.
    return array.take(indices, 0) if flags.c_contiguous and flags.aligned else array[indices]


def common_dtype(arrays: Sequence[np.ndarray]) -> np.dtype:
    """Return the common dtype of arrays by the promotion rules of tensors.

    Args:
        arrays: Arrays, at least one.
    """
    kinds = {array.dtype for array in arrays}
    if len(kinds) == 1:
        return kinds.pop()
    return np.dtype(functools.reduce(promote, (DTYPES[kind.name] for kind in kinds)).name)


def open_npy(path: Path) -> np.ndarray:
    """Return the memory-mapped array of an .npy file.

    Args:
        path: Path of the file.
    """
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # NumPy parses the header as Python code, with errors of any class
        raise ArgumentError(f"{path} cannot be mapped as an .npy file: {error!s:.500}") from None
    return _checked(array.view(np.ndarray), path)


def open_raw(path: Path, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the memory-mapped array of a raw file.

    Args:
        path: Path of the file.
        dtype: Name of the dtype.
        shape: Shape of the array; a first length of -1 is computed from the size of the file.
    """
    kind = np.dtype(dtype)
    row = int(np.prod(shape[1:], dtype=np.int64)) * kind.itemsize
    size = path.stat().st_size
    length = size // max(row, 1) if shape[0] == -1 else shape[0]
    if length * row != size:
        raise ArgumentError(
            f"{path} has {size} bytes, which do not fit {kind} of shape {shape}: an example takes "
            f"{row} bytes"
        )
    if size == 0:
        return np.empty((length, *shape[1:]), kind)
    mapped = np.memmap(path, kind, "r", shape=(length, *shape[1:]))
    return _checked(mapped.view(np.ndarray), path)


def _checked(array: np.ndarray, path: Path) -> np.ndarray:
    if array.ndim == 0 or array.dtype.kind not in "biufc":
        raise ArgumentError(
            f"{path} must contain numbers with an axis of examples, not {array.dtype} of shape "
            f"{array.shape}"
        )
    return array


class NpyWriter:
    """Writer of an .npy file, chunk by chunk along the first axis.

    Args:
        path: Path of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("wb")
        self.length = 0
        self.like: np.ndarray | None = None

    def write(self, chunk: np.ndarray) -> None:
        """Append the rows of a chunk.

        Args:
            chunk: Array with the dtype and row shape of the first chunk.
        """
        if chunk.ndim == 0:
            raise ShapeError(f"{self.path.name}: the first axis of a chunk must be the examples")
        if self.like is None:
            self.like = chunk[:0]
            self._header()
        if chunk.shape[1:] != self.like.shape[1:] or chunk.dtype != self.like.dtype:
            raise ShapeError(
                f"{self.path.name}: all chunks must have one dtype and row shape; got {chunk.dtype}"
                f" {chunk.shape[1:]} after {self.like.dtype} {self.like.shape[1:]}"
            )
        np.ascontiguousarray(chunk).tofile(self.file)
        self.length += len(chunk)

    def _header(self) -> None:
        # NumPy's header has room for a larger first axis.
        if self.like is None:
            raise ArgumentError(f"{self.path.name}: the data has no chunks; pass at least one")
        kind = np.lib.format.dtype_to_descr(self.like.dtype)
        shape = (self.length, *self.like.shape[1:])
        np.lib.format.write_array_header_1_0(
            self.file, {"descr": kind, "fortran_order": False, "shape": shape}
        )

    def finish(self) -> None:
        """Write the final length into the header and sync the file to disk."""
        self.file.seek(0)
        self._header()
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
