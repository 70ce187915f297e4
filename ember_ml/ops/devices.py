"""Devices and memory, and the choice of backend beside them."""

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
    """The device of a tensor, or the one where new tensors are made."""
    if tensor is None:
        return devices.default_device()
    return tensor.device if isinstance(tensor, EmberTensor) else convert_to_tensor(tensor).device


def get_available_devices() -> list[str]:
    """The devices of the active backend, the default first."""
    return devices.available_devices()


def to_device(x: TensorLike, device: str) -> Tensor:
    """The same values on another device of the tensor's backend."""
    return convert_to_tensor(x).to_device(device)


def memory_usage(backend: str | None = None) -> dict[str, int]:
    """Bytes that a backend (the active one unless named) holds on its device, as far as known."""
    return dict(runtime.load(backend or runtime.active()).memory_usage())


def synchronize(*tensors: Tensor) -> None:
    """Wait until pending work is done: of the tensors given, or else all of the active backend."""
    if not tensors:
        runtime.load(runtime.active()).synchronize()
    for tensor in tensors:
        runtime.LOADED[tensor.backend].wait(tensor.native)
