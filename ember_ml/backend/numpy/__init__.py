"""NumPy backend: functions of native arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ember_ml._core.errors import ArgumentError, DeviceError
from ember_ml._core.host import check_unmasked
from ember_ml.backend.interface import Autodiff, Memory, Optimization, Profiling, Random
from ember_ml.backend.numpy import autodiff as _autodiff
from ember_ml.backend.numpy import memory as _memory
from ember_ml.backend.numpy import profiling as _profiling
from ember_ml.backend.numpy.ops.random import native as _random

if TYPE_CHECKING:
    from ember_ml.backend import numpy as _module
    from ember_ml.backend.interface import Backend

    _checked: Backend = _module

autodiff: Autodiff = _autodiff
random: Random = _random
ARRAY = np.ndarray
IS_HOST = True
"""NumPy arrays are host data: an op moves them to the backend of its other operands."""
IS_LAZY = False
DTYPES = {
    name: np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
read_plain = operator.getitem
version = np.__version__

from ember_ml.backend.numpy import optimization as _optimization  # noqa: E402  (uses DTYPES)

optimization: Optimization = _optimization
memory: Memory = _memory
profiling: Profiling = _profiling


def devices() -> list[str]:
    """Return the names of the devices, the default first."""
    return ["cpu"]


def device_of(data: np.ndarray) -> str:
    """Return the device of the array."""
    return "cpu"


def to_device(data: np.ndarray, device: str) -> np.ndarray:
    """Return the array on another device."""
    if device != "cpu":
        raise DeviceError(f"the numpy backend has no device {device!r}; it has cpu")
    return data


def adopt(data: np.ndarray) -> np.ndarray:
    """Return a handle to a user's array that a tensor can own."""
    check_unmasked(data)
    data = np.asarray(data).view()
    return data if data.dtype.isnative else data.astype(data.dtype.newbyteorder("="))


def from_host(array: np.ndarray, dtype: np.dtype, device: str, copy: bool | None) -> np.ndarray:
    """Convert a NumPy array."""
    if array.dtype == dtype:
        return array.copy() if copy else array
    if copy is False:
        raise ArgumentError(f"copy=False: {array.dtype} to {dtype} needs a copy")
    return cast(array, dtype)


def read_array(
    fill: Callable[[memoryview], object], count: int, dtype: np.dtype, device: str
) -> np.ndarray:
    """Return a new 1-D array whose bytes `fill` provides."""
    data = np.empty(count, dtype)
    fill(memoryview(data.view(np.uint8)))
    return data


def to_host(data: np.ndarray) -> np.ndarray:
    """Convert to a NumPy array, sharing memory."""
    return np.asarray(data)


def to_portable(data: np.ndarray) -> np.ndarray:
    """Convert to a NumPy array with a dtype that represents every value exactly."""
    return np.asarray(data)


def from_backend(source: np.ndarray, data: np.ndarray, dtype: np.dtype, device: str) -> np.ndarray:
    """Convert an array of another backend."""
    return from_host(source.to_portable(data), dtype, device, None)


def scalar(value: complex, dtype: np.dtype, device: str) -> np.ndarray:
    """Return a 0-d array."""
    return np.array(value, dtype)


def cast(data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the array in another dtype; complex to real is an error."""
    if data.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"complex values do not fit {dtype}; use real(x) or abs(x) first")
    with np.errstate(invalid="ignore", over="ignore"):
        return data.astype(dtype)


def copy(data: np.ndarray) -> np.ndarray:
    """Return a copy."""
    return np.array(data)


def overwrite(
    data: np.ndarray, update: np.ndarray, axis: int, start: int | np.ndarray
) -> np.ndarray:
    """Write the update into the array."""
    start = start if isinstance(start, int) else int(start.item())
    data[(slice(None),) * axis + (slice(start, start + update.shape[axis]),)] = update
    return data


def item(data: np.ndarray) -> np.ndarray:
    """Return the only element as a Python scalar."""
    return data.item()


def truth(data: np.ndarray) -> bool | None:
    """Return whether the only element is true."""
    return bool(data.item())


def tolist(data: np.ndarray) -> np.ndarray:
    """Return nested lists of Python scalars."""
    return data.tolist()


def to_dlpack(
    data: np.ndarray, stream: Any, max_version: Any, dl_device: Any, copy: bool | None
) -> np.ndarray:
    """Return the DLPack capsule of the array."""
    return np.asarray(data).__dlpack__(
        stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
    )


def from_dlpack(source: np.ndarray, copy: bool | None) -> np.ndarray:
    """Convert any object that supports DLPack."""
    return np.from_dlpack(source, copy=copy)


def synchronize() -> None:
    """Do nothing: NumPy computes eagerly."""


def wait(data: np.ndarray) -> None:
    """Do nothing: NumPy computes eagerly."""


def memory_usage() -> dict[str, int]:
    """Return an empty dict: NumPy does not report its memory usage."""
    return {}
