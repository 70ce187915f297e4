"""Arrays in safetensors and .npz files."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from ember_ml._core.errors import ArgumentError, ArgumentTypeError

_NAMES = {
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
_CODES = {name: code for code, name in _NAMES.items()}


def serialize(arrays: Mapping[str, tuple[Any, str]], metadata: Mapping[str, str]) -> bytes:
    """Return the content of a safetensors file.

    Args:
        arrays: Name -> (array that holds the values exactly, dtype name to store them in).
        metadata: Entries of the file's header.
    """
    buffers = {name: _buffer(name, array, dtype) for name, (array, dtype) in arrays.items()}
    specs = {
        name: safetensors.TensorSpec(
            dtype=arrays[name][1],
            shape=buffer.shape,
            data_ptr=buffer.ctypes.data,
            data_len=buffer.nbytes,
        )
        for name, buffer in buffers.items()
    }
    return safetensors.serialize(specs, metadata=dict(metadata))


def _buffer(name: str, array: Any, dtype: str) -> Any:
    """Return the values in the byte layout of the format."""
    if dtype not in _CODES:
        raise ArgumentTypeError(f"{name!r}: safetensors files do not support {dtype}")
    if dtype == "bfloat16":  # the upper half of the bits of a float32
        bits = np.asarray(array, np.float32, order="C").view(np.uint32) >> np.uint32(16)
        return bits.astype("<u2")
    return np.asarray(array, np.dtype(dtype).newbyteorder("<"), order="C")


def deserialize(source: str | os.PathLike[str] | bytes) -> dict[str, tuple[Any, str]]:
    """Return the arrays of a safetensors file: name -> (array that holds the values, dtype name).

    Args:
        source: The file, or its content.
    """
    content = source if isinstance(source, bytes) else Path(source).read_bytes()
    parts = safetensors.deserialize(content)  # type: ignore[no-untyped-call]
    return {name: _array(part) for name, part in parts}


def _array(part: Mapping[str, Any]) -> tuple[Any, str]:
    dtype = _NAMES[part["dtype"]]
    if dtype == "bfloat16":
        bits = np.frombuffer(part["data"], "<u2").astype(np.uint32) << np.uint32(16)
        values = bits.view(np.float32)
    else:
        values = np.frombuffer(part["data"], np.dtype(dtype).newbyteorder("<"))
    return values.astype(values.dtype.newbyteorder("=")).reshape(part["shape"]), dtype


def read_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the arrays of an .npz file by name; pickled objects are refused.

    Args:
        path: The file.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, AttributeError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ArgumentError(f"{path} is not an .npz file of numbers: {error}") from None
