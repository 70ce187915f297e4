"""Arrays in safetensors and .npz files."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.safetensors_files import DTYPES, SafetensorsFile, host_array

_CODES = {name: code for code, name in DTYPES.items()}


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


def deserialize(path: str | os.PathLike[str]) -> dict[str, tuple[Any, str]]:
    """Return the arrays of a safetensors file: name -> (array that holds the values, dtype name).

    Args:
        path: The file.

    Raises:
        FileNotFoundError: If there is no such file.
        SafetensorsError: If the file is not valid.
    """
    with SafetensorsFile(path) as file, file.read() as reading:
        return {name: (host_array(info, reading), info.dtype) for name, info in reading.tensors()}


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
