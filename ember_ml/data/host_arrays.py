"""Host arrays for the data part: orders, rows, stacking, padding, files. All of it NumPy's."""

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
"""What a stream of random numbers is for: one seed gives each purpose numbers of its own."""


def use_host_backend() -> None:
    """Make new tensors of this process in host memory."""
    selection.set_backend("numpy")


def generator(seed: int, purpose: int, number: int = 0) -> Any:
    """A random stream that is a function of its arguments alone."""
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose, number))
    return np.random.Generator(np.random.PCG64(sequence))


def permutation(length: int, seed: int, purpose: int, number: int = 0) -> Array:
    """0 to length - 1 in an order that is a function of the arguments alone."""
    return np.asarray(generator(seed, purpose, number).permutation(length))


def span(start: int, stop: int) -> Array:
    """The indices from start up to, but not including, stop."""
    return np.arange(start, stop)


def is_array(data: Any) -> bool:
    """Whether this is an array in host memory."""
    return isinstance(data, np.ndarray)


def is_scalar(data: Any) -> bool:
    """Whether this is a number of NumPy's."""
    return isinstance(data, np.generic)


def array_of(data: Any) -> Array:
    """Numbers as a host array; Python's own become float32, int64 or bool."""
    array, name = host.parse(data, None)
    return array if array.dtype.name == name else array.astype(name)


def is_plain(data: Any) -> bool:
    """Whether this is an array whose bytes are all there is to it."""
    return isinstance(data, np.ndarray) and data.dtype.kind in "biufc" and data.size > 0


def empty(dtype: str, shape: tuple[int, ...]) -> Array:
    """An array to be filled; the dtype with its byte order, as in `array.dtype.str`."""
    return np.empty(shape, dtype)


def bytes_of(array: Array) -> Any:
    """The memory of an array in C order: its own, if it is in that order."""
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


def indices_of(data: Any, length: int, where: str) -> Array:
    """Indices of `length` examples as a host array, none of them negative or too large."""
    array = np.asarray(data)
    if array.size == 0:
        array = array.astype(np.int64).reshape(-1)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ArgumentTypeError(
            f"{where}: the indices must be a sequence of integers, not {data!r:.60}"
        )
    wrong = array[(array < -length) | (array >= length)]
    if wrong.size:
        raise ArgumentError(f"{where}: the index {wrong[0]} is out of range for {length} examples")
    return np.where(array < 0, array + length, array).astype(np.int64)


def take(array: Array, indices: Array) -> Array:
    """The rows at the indices, in memory of their own."""
    flags = array.flags
    # Of other arrays `take` would first copy the whole.
    return array.take(indices, 0) if flags.c_contiguous and flags.aligned else array[indices]


def _common_dtype(arrays: Sequence[Array]) -> Any:
    """The dtype that arrays make together, by the rules of tensors."""
    kinds = {array.dtype for array in arrays}
    if len(kinds) == 1:
        return kinds.pop()
    return np.dtype(functools.reduce(promote, (DTYPES[kind.name] for kind in kinds)).name)


def stack(arrays: Sequence[Array]) -> Array:
    """Arrays of one shape along a new first axis."""
    return np.stack(arrays, dtype=_common_dtype(arrays))


def join(parts: Sequence[Array], order: Array) -> Array:
    """The rows of several arrays, brought into an order."""
    return take(np.concatenate(parts, dtype=_common_dtype(parts)), order)


def groups(indices: Array, ends: Sequence[int]) -> tuple[list[tuple[int, Array]], Array]:
    """Indices of joined datasets by dataset: (dataset, its own indices), and where each one went.

    Args:
        ends: where each dataset ends in the joined numbering.
    """
    owners = np.searchsorted(ends, indices, side="right")
    starts = np.concatenate([[0], ends])
    found = [(int(owner), indices[owners == owner] - starts[owner]) for owner in np.unique(owners)]
    return found, np.argsort(np.argsort(owners, kind="stable"), kind="stable")


def pad(arrays: Sequence[Array], value: Any, axis: int) -> Array:
    """Arrays stacked along a new first axis, each filled up to the longest along `axis`."""
    shape = list(arrays[0].shape)
    shape[axis] = max(array.shape[axis] for array in arrays)
    dtype = _common_dtype(arrays)
    try:
        padded = np.full((len(arrays), *shape), value, dtype)
    except (OverflowError, TypeError, ValueError):
        raise ArgumentError(f"pad_collate: the value {value!r} does not fit {dtype}") from None
    for row, array in zip(padded, arrays, strict=True):
        row[(*[slice(None)] * axis, slice(array.shape[axis]))] = array
    return padded


def lengths(arrays: Sequence[Array], axis: int) -> Array:
    """How long each array is along an axis."""
    return np.array([array.shape[axis] for array in arrays], np.int64)


def mask(arrays: Sequence[Array], axis: int) -> Array:
    """True where `pad` put an array's own elements: (array, position)."""
    count = lengths(arrays, axis)
    return np.arange(count.max()) < count[:, None]


def open_npy(path: Path) -> Array:
    """The array in an .npy file, read from the file where it is touched."""
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise ArgumentError(f"{path} cannot be mapped as an .npy file: {error}") from None
    return _checked(array.view(np.ndarray), path)


def open_raw(path: Path, dtype: str, shape: tuple[int, ...]) -> Array:
    """The array in a file of nothing but numbers; a first length of -1 is what the file holds."""
    kind = np.dtype(dtype)
    row = int(np.prod(shape[1:], dtype=np.int64)) * kind.itemsize
    size = path.stat().st_size
    length = size // max(row, 1) if shape[0] == -1 else shape[0]
    if length * row != size:
        raise ArgumentError(
            f"{path} has {size} bytes, but {kind} of shape {shape} takes {row} for each example"
        )
    if size == 0:
        return np.empty((length, *shape[1:]), kind)
    mapped = np.memmap(path, kind, "r", shape=(length, *shape[1:]))
    return _checked(mapped.view(np.ndarray), path)


def _checked(array: Array, path: Path) -> Array:
    if array.ndim == 0 or array.dtype.kind not in "biufc":
        raise ArgumentError(
            f"{path} must hold numbers with an axis of examples, not {array.dtype} of shape "
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
        """Add the rows of a chunk."""
        if chunk.ndim == 0:
            raise ShapeError(f"{self.path.name}: a chunk needs a first axis of examples")
        if self.like is None:
            self.like = chunk[:0]
            self._header()
        if chunk.shape[1:] != self.like.shape[1:] or chunk.dtype != self.like.dtype:
            raise ShapeError(
                f"{self.path.name}: a chunk of {chunk.dtype} and rows of shape {chunk.shape[1:]} "
                f"follows one of {self.like.dtype} and {self.like.shape[1:]}"
            )
        np.ascontiguousarray(chunk).tofile(self.file)
        self.length += len(chunk)

    def _header(self) -> None:
        # NumPy leaves room in the header for the first axis to grow.
        if self.like is None:
            raise ArgumentError(f"{self.path.name}: there is no chunk to write")
        kind = np.lib.format.dtype_to_descr(self.like.dtype)
        shape = (self.length, *self.like.shape[1:])
        np.lib.format.write_array_header_1_0(
            self.file, {"descr": kind, "fortran_order": False, "shape": shape}
        )

    def finish(self) -> None:
        """Put the final length into the header, and all of it on the disk."""
        self.file.seek(0)
        self._header()
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
