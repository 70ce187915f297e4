"""NumPy functions for datasets: permutations, rows, stacking, padding and files."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ember_ml._core import host
from ember_ml._core.dtype import DTYPES, promote
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.backend import selection

Array: TypeAlias = np.ndarray[Any, Any]

ORDER, SPLIT, EXAMPLE = range(3)
"""Purposes of random numbers: one seed has an independent stream for each."""


def use_host_backend() -> None:
    """Create new tensors of this process on the NumPy backend."""
    selection.set_backend("numpy")


def generator(seed: int, purpose: int, number: int = 0) -> Any:
    """Return a random generator that depends only on the arguments."""
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose, number))
    return np.random.Generator(np.random.PCG64(sequence))


def permutation(length: int, seed: int, purpose: int, number: int = 0) -> Array:
    """Return a permutation of 0 to length - 1 that depends only on the arguments."""
    return np.asarray(generator(seed, purpose, number).permutation(length))


def span(start: int, stop: int) -> Array:
    """Return the indices from start up to, but not including, stop."""
    return np.arange(start, stop)


def is_array(data: Any) -> bool:
    """Return whether the value is a NumPy array."""
    return isinstance(data, np.ndarray)


def is_scalar(data: Any) -> bool:
    """Return whether the value is a NumPy scalar."""
    return isinstance(data, np.generic)


def array_of(data: Any) -> Array:
    """Return numbers as a host array; Python numbers become float32, int64 or bool."""
    array, name = host.parse(data, None)
    return array if array.dtype.name == name else array.astype(name)


def is_plain(data: Any) -> bool:
    """Return whether the value is a nonempty numeric array, which can be sent as bytes."""
    return isinstance(data, np.ndarray) and data.dtype.kind in "biufc" and data.size > 0


def empty(dtype: str, shape: tuple[int, ...]) -> Array:
    """Return an uninitialized array; the dtype includes the byte order, as in `dtype.str`."""
    return np.empty(shape, dtype)


def bytes_of(array: Array) -> Any:
    """Return the bytes of an array in C order, without a copy if it is contiguous."""
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


def indices_of(data: Any, length: int, where: str) -> Array:
    """Return indices into `length` examples as a host array of nonnegative integers."""
    array = np.asarray(data)
    if array.size == 0:
        array = array.astype(np.int64).reshape(-1)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ArgumentTypeError(
            f"{where}: the indices must be a sequence of integers, not {data!r:.60}"
        )
    wrong = array[(array < -length) | (array >= length)]
    if wrong.size:
        raise ArgumentError(f"{where}: index {wrong[0]} is out of range for {length} examples")
    return np.where(array < 0, array + length, array).astype(np.int64)


def take(array: Array, indices: Array) -> Array:
    """Return a copy of the rows at the indices."""
    flags = array.flags
    # `take` would first copy the whole of any other array.
    return array.take(indices, 0) if flags.c_contiguous and flags.aligned else array[indices]


def _common_dtype(arrays: Sequence[Array]) -> Any:
    """Return the common dtype of arrays by the promotion rules of tensors."""
    kinds = {array.dtype for array in arrays}
    if len(kinds) == 1:
        return kinds.pop()
    return np.dtype(functools.reduce(promote, (DTYPES[kind.name] for kind in kinds)).name)


def stack(arrays: Sequence[Array]) -> Array:
    """Return arrays of equal shape stacked along a new first axis."""
    return np.stack(arrays, dtype=_common_dtype(arrays))


def join(parts: Sequence[Array], order: Array) -> Array:
    """Return the rows of several arrays, concatenated and reordered."""
    return take(np.concatenate(parts, dtype=_common_dtype(parts)), order)


def groups(indices: Array, ends: Sequence[int]) -> tuple[list[tuple[int, Array]], Array]:
    """Group indices of concatenated datasets by dataset.

    Args:
        indices: Indices into the concatenation.
        ends: End of each dataset in the concatenation.

    Returns:
        (dataset, indices into it) for each dataset, and the position of each index in the groups.
    """
    owners = np.searchsorted(ends, indices, side="right")
    starts = np.concatenate([[0], ends])
    grouped = [
        (int(owner), indices[owners == owner] - starts[owner]) for owner in np.unique(owners)
    ]
    return grouped, np.argsort(np.argsort(owners, kind="stable"), kind="stable")


def pad(arrays: Sequence[Array], value: Any, axis: int) -> Array:
    """Return arrays stacked along a new first axis, padded to the longest along `axis`."""
    shape = list(arrays[0].shape)
    shape[axis] = max(array.shape[axis] for array in arrays)
    dtype = _common_dtype(arrays)
    try:
        padded = np.full((len(arrays), *shape), value, dtype)
    except (OverflowError, TypeError, ValueError):
        raise ArgumentError(f"pad_collate: value={value!r} does not fit {dtype}") from None
    for row, array in zip(padded, arrays, strict=True):
        row[(*[slice(None)] * axis, slice(array.shape[axis]))] = array
    return padded


def lengths(arrays: Sequence[Array], axis: int) -> Array:
    """Return the length of each array along an axis."""
    return np.array([array.shape[axis] for array in arrays], np.int64)


def mask(arrays: Sequence[Array], axis: int) -> Array:
    """Return a mask of shape (arrays, positions) that is False where `pad` pads."""
    count = lengths(arrays, axis)
    return np.arange(count.max()) < count[:, None]


def open_npy(path: Path) -> Array:
    """Return the memory-mapped array of an .npy file."""
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise ArgumentError(f"{path} cannot be mapped as an .npy file: {error}") from None
    return _checked(array.view(np.ndarray), path)


def open_raw(path: Path, dtype: str, shape: tuple[int, ...]) -> Array:
    """Return the memory-mapped array of a raw file.

    If the first length is -1, it is computed from the size of the file.
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


def _checked(array: Array, path: Path) -> Array:
    if array.ndim == 0 or array.dtype.kind not in "biufc":
        raise ArgumentError(
            f"{path} must contain numbers with an axis of examples, not {array.dtype} of shape "
            f"{array.shape}"
        )
    return array


class NpyWriter:
    """Writes an .npy file chunk by chunk along the first axis."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("wb")
        self.length = 0
        self.like: Array | None = None

    def write(self, chunk: Array) -> None:
        """Append the rows of a chunk."""
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
