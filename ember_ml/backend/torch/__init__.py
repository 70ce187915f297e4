"""PyTorch backend: functions of native tensors."""

from __future__ import annotations

import operator as _operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ember_ml._core import recording as _recording
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, DeviceError
from ember_ml.backend import devices as _devices
from ember_ml.backend import selection as _selection
from ember_ml.backend.interface import GraphAutodiff, Memory, Optimization, Profiling, Random
from ember_ml.backend.torch import autodiff as _autodiff
from ember_ml.backend.torch import memory as _memory
from ember_ml.backend.torch import profiling as _profiling
from ember_ml.backend.torch.constants import constant_result as _constant_result
from ember_ml.backend.torch.ops.random import native as _random

if TYPE_CHECKING:
    from ember_ml.backend import torch as _module
    from ember_ml.backend.interface import Backend

    _checked: Backend = _module

autodiff: GraphAutodiff = _autodiff
random: Random = _random
ARRAY = torch.Tensor
IS_HOST = False
IS_LAZY = False
DTYPES = {
    name: getattr(torch, name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    )
}
_OF_HOST = {np.dtype(name): DTYPES[name] for name in DTYPES if name != "bfloat16"}
read_plain = _operator.getitem
version = torch.__version__

from ember_ml.backend.torch import optimization as _optimization  # noqa: E402  (uses DTYPES)

optimization: Optimization = _optimization
memory: Memory = _memory
profiling: Profiling = _profiling

# Values that a function reads from outside while it is traced are constants of the compiled code.
for _function in (_selection.get_backend, _devices.resolve, _recording.current):
    _constant_result(_function)


def devices() -> list[str]:
    """Return the names of the devices, the default first."""
    names = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    if names:
        names.insert(0, "cuda")
    if torch.backends.mps.is_available():
        names.append("mps")
    return [*names, "cpu"]


def device_of(data: torch.Tensor) -> str:
    """Return the device of the tensor."""
    return str(data.device)


def to_device(data: torch.Tensor, device: str) -> torch.Tensor:
    """Return the tensor on another device."""
    if device != "cpu" and device not in devices():
        raise DeviceError(
            f"the torch backend has no device {device!r}; it has {', '.join(devices())}"
        )
    return data.to(device)


def adopt(data: torch.Tensor) -> torch.Tensor:
    """Return a handle to a user's tensor that an Ember tensor can own."""
    return data.view_as(data)  # a new object, because a tape identifies values by id


def from_host(
    array: torch.Tensor, dtype: torch.dtype, device: str, copy: bool | None
) -> torch.Tensor:
    """Convert a NumPy array, sharing memory where possible."""
    shareable = array.flags.writeable and (not array.strides or min(array.strides) >= 0)
    if shareable and not copy and device == "cpu" and _OF_HOST.get(array.dtype) is dtype:
        return torch.from_numpy(array)
    if array.dtype.name not in DTYPES:  # uint16, uint32, uint64
        wide = (
            np.int64 if DTYPES["int64"] is torch.promote_types(dtype, torch.int64) else np.float64
        )
        array, shareable = array.astype(wide), False
    if copy is False and not (shareable and DTYPES[array.dtype.name] is dtype and device == "cpu"):
        raise ArgumentError("copy=False: the array's memory cannot be shared with torch")
    source = torch.from_numpy(array) if shareable else torch.from_numpy(array.copy())
    if source.dtype is not dtype:
        return cast(source, dtype).to(device)
    return source.clone() if copy and shareable and device == "cpu" else source.to(device)


def read_array(
    fill: Callable[[memoryview], object], count: int, dtype: torch.dtype, device: str
) -> torch.Tensor:
    """Return a new 1-D tensor whose bytes `fill` provides."""
    data = np.empty(count * dtype.itemsize, np.uint8)  # NumPy asks for huge pages, torch does not
    fill(memoryview(data))
    if not count:  # an empty tensor of bytes has no view
        return torch.empty(0, dtype=dtype, device=device)
    return torch.from_numpy(data).view(dtype).to(device)


def to_host(data: torch.Tensor) -> np.ndarray:
    """Convert to a NumPy array, sharing memory where possible."""
    if data.dtype is torch.bfloat16:
        raise ArgumentTypeError("NumPy has no bfloat16; use x.astype('float32').numpy()")
    if data.layout is not torch.strided:
        raise ArgumentTypeError("a sparse torch tensor cannot be converted; use x.to_dense()")
    if data.is_meta:
        raise ArgumentTypeError("a torch tensor on the meta device has no values to convert")
    return data.detach().cpu().resolve_conj().resolve_neg().numpy()


def to_portable(data: torch.Tensor) -> np.ndarray:
    """Convert to a NumPy array with a dtype that represents every value exactly."""
    return to_host(data.float() if data.dtype is torch.bfloat16 else data)


def from_backend(
    source: torch.Tensor, data: torch.Tensor, dtype: torch.dtype, device: str
) -> torch.Tensor:
    """Convert an array of another backend."""
    return from_host(source.to_portable(data), dtype, device, None)


def scalar(value: complex, dtype: torch.dtype, device: str) -> torch.Tensor:
    """Return a 0-d tensor."""
    return torch.tensor(value, dtype=dtype, device=device)


def cast(data: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the tensor in another dtype."""
    if data.dtype.is_complex and not dtype.is_complex and dtype is not torch.bool:
        raise TypeError(f"complex values do not fit {dtype}; use real(x) or abs(x) first")
    return data.to(dtype)


def copy(data: torch.Tensor) -> torch.Tensor:
    """Return a copy."""
    return data.clone()


def overwrite(
    data: torch.Tensor, update: torch.Tensor, axis: int, start: int | torch.Tensor
) -> torch.Tensor:
    """Write the update into the tensor, or into a copy while torch records or transforms."""
    if not isinstance(start, int):
        return data.index_copy_(axis, start, update)
    if update.requires_grad or torch._C._are_functorch_transforms_active():
        return torch.slice_scatter(data, update, axis, start, start + update.shape[axis])
    data.narrow(axis, start, update.shape[axis]).copy_(update)
    return data


def item(data: torch.Tensor) -> torch.Tensor:
    """Return the only element as a Python scalar."""
    return data.item()


def truth(data: torch.Tensor) -> bool | None:
    """Return whether the only element is true; None while a compiler or vmap traces."""
    if torch.compiler.is_compiling():
        return None
    try:
        return bool(data.item())
    except RuntimeError:
        return None


def tolist(data: torch.Tensor) -> torch.Tensor:
    """Return nested lists of Python scalars."""
    return data.tolist()


def to_dlpack(
    data: torch.Tensor, stream: Any, max_version: Any, dl_device: Any, copy: bool | None
) -> torch.Tensor:
    """Return the DLPack capsule of the tensor."""
    return data.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def from_dlpack(source: torch.Tensor, copy: bool | None) -> torch.Tensor:
    """Convert any object that supports DLPack."""
    return torch.from_dlpack(source, copy=copy)


def synchronize() -> None:
    """Wait for pending work on the accelerator."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    elif torch.backends.mps.is_available():
        torch.mps.synchronize()


def wait(data: torch.Tensor) -> None:
    """Wait until the tensor is computed."""
    if data.device.type != "cpu":
        synchronize()


def memory_usage() -> dict[str, int]:
    """Return the number of bytes allocated on the accelerator."""
    if torch.cuda.is_available():
        return {
            "allocated": torch.cuda.memory_allocated(),
            "peak": torch.cuda.max_memory_allocated(),
        }
    if torch.backends.mps.is_available():
        return {"allocated": torch.mps.current_allocated_memory()}
    return {}
