"""Reading of safetensors files: the header first, then each tensor into its own memory.

Files are not mapped: a mapped array would change, or crash the process, when its file does.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from io import FileIO
from typing import Any, NamedTuple, Self

import numpy as np

from ember_ml._core.errors import EmberError
from ember_ml._core.files import open_regular

DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
}
"""Dtype name in safetensors files -> dtype name."""
_PIECE = 1 << 22
"""Bytes that are read at a time, while the checksum of the previous piece is computed."""
_MAX_HEADER = 100_000_000
"""Maximum size of a header in bytes, as in the safetensors library."""


class SafetensorsError(EmberError, ValueError):
    """File that is not a valid safetensors file."""


class TensorInfo(NamedTuple):
    """Description of a tensor in the header.

    Attributes:
        dtype: Dtype name, such as "float32".
        shape: Length of each axis.
        start: Position of the first byte in the file.
        size: Number of bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    start: int
    size: int

    @property
    def num_elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class SafetensorsFile:
    """Open safetensors file with a checked header.

    Args:
        path: The file.

    Attributes:
        tensors: Name -> description, in the order of the data.
        size: Size of the file in bytes.

    Raises:
        FileNotFoundError: If there is no such file.
        SafetensorsError: If the header is not valid, or does not fit the size of the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file = open_regular(path)
        try:
            self.size = os.fstat(self._file.fileno()).st_size
            self._head = _read_head(self._file, self.size)
            self.tensors = _parse(self._head[8:], self.size)
        except BaseException as error:
            self._file.close()
            if isinstance(error, SafetensorsError):
                raise SafetensorsError(f"{self.path} is not a safetensors file: {error}") from None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    @property
    def metadata(self) -> dict[str, str]:
        """Entries of the header that describe no tensor."""
        entries = json.loads(self._head[8:]).get("__metadata__")
        entries = entries if isinstance(entries, dict) else {}
        return {name: text for name, text in entries.items() if isinstance(text, str)}

    def read(self) -> Reading:
        """Start reading the tensors in the order of the file."""
        return Reading(self)


class Reading:
    """One pass over the data of a file, which also computes the checksum of the file.

    Another thread computes the checksum of one piece while the next is read.

    Args:
        source: The file.

    Attributes:
        crc32: CRC-32 of the file, once all tensors are read.
    """

    def __init__(self, source: SafetensorsFile) -> None:
        self._source = source
        self._executor = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None
        self.crc32 = zlib.crc32(source._head)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._executor.shutdown()

    def tensors(self) -> Iterator[tuple[str, TensorInfo]]:
        """Yield name and description of each tensor; the consumer then reads it with `fill`."""
        self._source._file.seek(len(self._source._head))
        yield from self._source.tensors.items()
        if self._pending is not None:
            self._pending.result()

    def fill(self, buffer: memoryview) -> None:
        """Read the next bytes of the file into a writable buffer.

        Args:
            buffer: Bytes to fill.
        """
        for start in range(0, len(buffer), _PIECE):
            piece = buffer[start : start + _PIECE]
            _read_into(self._source._file, piece, self._source.path)
            if self._pending is not None:
                self._pending.result()
            self._pending = self._executor.submit(self._update, piece)

    def _update(self, piece: memoryview) -> None:
        self.crc32 = zlib.crc32(piece, self.crc32)


def host_array(info: TensorInfo, reading: Reading) -> Any:
    """Return the next tensor as a NumPy array; bfloat16 becomes float32.

    Args:
        info: Description of the tensor.
        reading: Pass over the file.
    """
    stored = "uint16" if info.dtype == "bfloat16" else info.dtype
    values = np.empty(info.num_elements, np.dtype(stored).newbyteorder("<"))
    reading.fill(memoryview(values.view(np.uint8)))
    if info.dtype == "bfloat16":  # the upper half of the bits of a float32
        values = (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.astype(values.dtype.newbyteorder("="), copy=False).reshape(info.shape)


def _read_into(file: FileIO, buffer: memoryview, path: str) -> None:
    done = 0
    while done < len(buffer):
        count = file.readinto(buffer[done:])
        if not count:
            raise SafetensorsError(f"{path} was truncated while it was read")
        done += count


def _read_head(file: FileIO, size: int) -> bytes:
    """Return the length field and the header."""
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(size - 8, _MAX_HEADER):
        raise SafetensorsError(
            f"it has {size} bytes, too few for its header" if len(start) == 8 else "it is too short"
        )
    buffer = bytearray(length)
    _read_into(file, memoryview(buffer), "the file")
    return start + bytes(buffer)


def _parse(head: bytes, size: int) -> dict[str, TensorInfo]:
    """Return the descriptions in the order of the data; the data must fill the file exactly."""
    try:
        entries = json.loads(head, object_pairs_hook=_unique)
    except SafetensorsError:
        raise
    except (ValueError, RecursionError) as error:
        raise SafetensorsError(f"its header is not valid JSON ({error})") from None
    if not isinstance(entries, dict):
        raise SafetensorsError("its header is not a JSON object")
    entries.pop("__metadata__", None)
    offset = 8 + len(head)
    infos = {name: _info(name, entry, offset) for name, entry in entries.items()}
    ordered = dict(sorted(infos.items(), key=lambda item: (item[1].start, item[1].size)))
    end = offset
    for name, info in ordered.items():
        if info.start != end:
            raise SafetensorsError(f"the data of {name!r} starts at byte {info.start}, not {end}")
        end += info.size
    if end != size:
        raise SafetensorsError(f"it has {size} bytes, but its header describes {end}")
    return ordered


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise SafetensorsError(f"the name {key!r:.60} occurs twice in its header")
        result[key] = value
    return result


def _info(name: str, entry: object, offset: int) -> TensorInfo:
    """Return the description of a tensor."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise SafetensorsError(f"{name!r:.60} needs dtype, shape and data_offsets")
    dtype, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise SafetensorsError(f"{name!r:.60} has the unknown dtype {dtype!r:.60}")
    if not _are_counts(shape) or not _are_counts(place) or len(place) != 2:
        raise SafetensorsError(
            f"{name!r:.60}: shape and data_offsets must be lists of nonnegative integers"
        )
    size = _bits(DTYPES[dtype]) * math.prod(shape) // 8
    if place[1] - place[0] != size:
        raise SafetensorsError(
            f"{name!r:.60} has {place[1] - place[0]} bytes, but {dtype} of shape "
            f"{tuple(shape)!s:.60} needs {size}"
        )
    return TensorInfo(DTYPES[dtype], tuple(shape), offset + place[0], size)


def _are_counts(value: object) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


def _bits(dtype: str) -> int:
    return 16 if dtype == "bfloat16" else 8 * np.dtype(dtype).itemsize
