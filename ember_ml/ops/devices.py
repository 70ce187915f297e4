"""Devices, memory, and selection of the backend."""

from __future__ import annotations

from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.backend import devices
from ember_ml.backend.devices import set_device
from ember_ml.backend.selection import get_backend, set_backend, use_backend

__all__ = [
    "get_available_devices",
    "get_backend",
    "get_device",
    "memory_usage",
    "set_backend",
    "set_device",
    "synchronize",
    "to_device",
    "use_backend",
]


def get_device(tensor: TensorLike | None = None) -> str:
    """Return the device of a tensor, or the device of new tensors.

    Args:
        tensor: Tensor or data. Default: none, which asks for the device of new tensors.
    """
    if tensor is None:
        return devices.default_device()
    return tensor.device if isinstance(tensor, EmberTensor) else convert_to_tensor(tensor).device


def get_available_devices() -> list[str]:
    """Return the devices of the active backend, the default first."""
    return devices.available_devices()


def to_device(x: TensorLike, device: str) -> Tensor:
    """Return the tensor on another device of its backend.

    Args:
        x: Input tensor.
        device: Name of the device, such as "cpu" or "cuda:0".
    """
    return convert_to_tensor(x).to_device(device)


def memory_usage(backend: str | None = None) -> dict[str, int]:
    """Return the bytes a backend holds on its device, by kind, as far as the backend reports them.

    Args:
        backend: Name of the backend. Default: the active one.
    """
    return dict(runtime.load(backend or runtime.active()).memory_usage())


def synchronize(*tensors: Tensor) -> None:
    """Wait until pending computation has finished.

    Args:
        tensors: Tensors to wait for. Default: all work of the active backend.
    """
    if not tensors:
        runtime.load(runtime.active()).synchronize()
    for tensor in tensors:
        runtime.LOADED[tensor.backend].wait(tensor.native)
