"""MLX backend: functions of native arrays. They stay lazy unless a value is read."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import numpy as np

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ConcurrentUseError, DeviceError
from ember_ml.backend.interface import Memory, Optimization, Profiling, Random, ReplayAutodiff
from ember_ml.backend.mlx import autodiff as _autodiff
from ember_ml.backend.mlx import indexing as _indexing
from ember_ml.backend.mlx import memory as _memory
from ember_ml.backend.mlx import profiling as _profiling
from ember_ml.backend.mlx.ops.random import native as _random

if TYPE_CHECKING:
    from ember_ml.backend import mlx as _module
    from ember_ml.backend.interface import Backend

    _checked: Backend = _module

autodiff: ReplayAutodiff = _autodiff
random: Random = _random
ARRAY = mx.array
IS_HOST = False
IS_LAZY = True
# No float64: MLX has it on a CPU, but computes exp, log, sin ... in it with float32's accuracy.
DTYPES = {
    name: getattr(mx, name if name != "bool" else "bool_")
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "complex64"),
    )
}
read_plain = _indexing.read_plain
version = metadata.version("mlx")

from ember_ml.backend.mlx import optimization as _optimization  # noqa: E402  (uses DTYPES)

optimization: Optimization = _optimization
memory: Memory = _memory
profiling: Profiling = _profiling


def devices() -> list[str]:
    """Return the names of the devices, the default first."""
    default = str(mx.default_device().type).rpartition(".")[2]
    return [default] if default == "cpu" else [default, "cpu"]


def device_of(data: mx.array) -> str:
    """Return the device on which MLX computes; memory is shared between devices."""
    return devices()[0]


def to_device(data: mx.array, device: str) -> mx.array:
    """Return the array itself; memory is shared between devices."""
    if device not in devices():
        raise DeviceError(
            f"the mlx backend has no device {device!r}; it has {', '.join(devices())}"
        )
    return data


def adopt(data: mx.array) -> mx.array:
    """Return a handle that later in-place changes to the user's array do not affect."""
    return mx.array(data)


def from_host(array: np.ndarray, dtype: mx.Dtype, device: str, copy: bool | None) -> mx.array:
    """Convert a NumPy array; MLX always copies."""
    if copy is False:
        raise ArgumentError("copy=False: MLX always copies NumPy arrays")
    if array.dtype == np.complex128 and dtype != mx.complex64:
        raise TypeError(f"complex values do not fit {dtype}; use real(x) or abs(x) first")
    if array.size == 0:  # MLX (0.32) may hang in a sum over an empty NumPy array
        return mx.zeros(array.shape, dtype)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    if array.size == 1:  # NumPy keeps a negative stride, which MLX does not support
        array = array.copy()
    return cast(mx.array(np.asarray(array, order="C")), dtype)


_PIECE = 1 << 20
"""Number of elements of an array that are read at a time."""


def read_array(
    fill: Callable[[memoryview], object], count: int, dtype: mx.Dtype, device: str
) -> mx.array:
    """Return a new 1-D array whose bytes `fill` provides.

    Long arrays are filled in place, piece by piece: MLX copies from NumPy, and a whole second array
    would double the memory.
    """
    stored = np.dtype(f"u{dtype.size}")
    pieces = range(0, count, _PIECE)
    if len(pieces) <= 1:
        return _filled(fill, count, stored).view(dtype)
    data = mx.zeros(count, _filled(fill, 0, stored).dtype)
    for start in pieces:
        stop = min(start + _PIECE, count)
        data[start:stop] = _filled(fill, stop - start, stored)
        mx.eval(data)
    return data.view(dtype)


def _filled(fill: Callable[[memoryview], object], count: int, dtype: np.dtype) -> mx.array:
    piece = np.empty(count, dtype)
    fill(memoryview(piece.view(np.uint8)))
    return mx.array(piece)


def to_host(data: mx.array) -> np.ndarray:
    """Convert to a NumPy array, sharing memory where possible."""
    if data.dtype == mx.bfloat16:
        raise ArgumentTypeError("NumPy has no bfloat16; use x.astype('float32').numpy()")
    try:
        return np.asarray(data)
    except RuntimeError as error:
        raise _read_error(error) from error


def _read_error(error: RuntimeError) -> RuntimeError:
    """Return the error to raise for one of MLX: it names what to do with another thread's array."""
    if "in current thread" not in str(error):
        return error
    return ConcurrentUseError(
        "an array that another thread has not computed can be read in that thread only; compute "
        "it there, for example with x.numpy(), before it is used in this thread"
    )


def to_portable(data: mx.array) -> np.ndarray:
    """Convert to a NumPy array with a dtype that represents every value exactly."""
    return to_host(data.astype(mx.float32) if data.dtype == mx.bfloat16 else data)


def from_backend(source: mx.array, data: mx.array, dtype: mx.Dtype, device: str) -> mx.array:
    """Convert an array of another backend."""
    return from_host(source.to_portable(data), dtype, device, None)


def scalar(value: complex, dtype: mx.Dtype, device: str) -> mx.array:
    """Return a 0-d array."""
    if type(value) is int and mx.issubdtype(dtype, mx.inexact):
        value = float(value)
    elif type(value) is int and value >= 2**63:
        return mx.array(np.uint64(value))
    return mx.array(value, dtype)


def cast(data: mx.array, dtype: mx.Dtype) -> mx.array:
    """Return the array in another dtype."""
    if data.dtype == mx.complex64 and dtype not in (mx.complex64, mx.bool_):
        raise TypeError(f"complex values do not fit {dtype}; use real(x) or abs(x) first")
    return data.astype(dtype)


def copy(data: mx.array) -> mx.array:
    """Return a copy that later in-place changes do not affect."""
    return mx.array(data)


def overwrite(data: mx.array, update: mx.array, axis: int, start: int | mx.array) -> mx.array:
    """Return the array with the update; MLX reuses memory that nothing else refers to."""
    place = mx.array([start]) if isinstance(start, int) else start
    return mx.slice_update(data, update, place, (axis,))


def item(data: mx.array) -> mx.array:
    """Return the only element as a Python scalar."""
    try:
        return data.item()
    except RuntimeError as error:
        raise _read_error(error) from error


def truth(data: mx.array) -> bool | None:
    """Return whether the only element is true; None while a compiler or vmap traces."""
    try:
        return bool(data.item())
    except ValueError:
        return None
    except RuntimeError as error:
        raise _read_error(error) from error


def tolist(data: mx.array) -> mx.array:
    """Return nested lists of Python scalars."""
    try:
        return data.tolist()
    except RuntimeError as error:
        raise _read_error(error) from error


def to_dlpack(
    data: mx.array, stream: Any, max_version: Any, dl_device: Any, copy: bool | None
) -> mx.array:
    """Return the DLPack capsule of a NumPy view of the array's memory."""
    return to_host(data).__dlpack__(
        stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
    )


def from_dlpack(source: mx.array, copy: bool | None) -> mx.array:
    """Convert any object that supports DLPack."""
    if copy is False:
        raise BufferError("MLX always copies arrays imported through DLPack")
    array = np.from_dlpack(source)
    return from_host(array, DTYPES[array.dtype.name], devices()[0], None)


def synchronize() -> None:
    """Wait for pending work."""
    mx.synchronize()


def wait(data: mx.array) -> None:
    """Wait until the array is computed."""
    mx.eval(data)


def memory_usage() -> dict[str, int]:
    """Return the number of bytes that MLX has allocated."""
    return {
        "allocated": mx.get_active_memory(),
        "cached": mx.get_cache_memory(),
        "peak": mx.get_peak_memory(),
    }
