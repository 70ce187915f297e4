"""Default device of each backend."""

from __future__ import annotations

import os

from ember_ml._core.errors import DeviceError
from ember_ml.backend import selection

_chosen: dict[str, str] = {}


def available_devices(backend: str | None = None) -> list[str]:
    """Return the devices of a backend, the default first.

    Args:
        backend: Name of the backend. Default: the active one.
    """
    return list(selection.import_backend(backend or selection.get_backend()).devices())


def check(backend: str, device: str) -> str:
    """Return the device; raise a DeviceError if the backend does not have it."""
    known = available_devices(backend)
    if device in known or (device.partition(":")[0] in known):
        return device
    raise DeviceError(f"the {backend} backend has no device {device!r}; it has {', '.join(known)}")


def set_device(device: str, backend: str | None = None) -> None:
    """Create new tensors of a backend on `device` from now on.

    Args:
        device: Name of the device.
        backend: Name of the backend. Default: the active one.
    """
    name = backend or selection.get_backend()
    _chosen[name] = check(name, device)


def default_device(backend: str | None = None) -> str:
    """Return the device on which new tensors of a backend are created.

    Args:
        backend: Name of the backend. Default: the active one.
    """
    name = backend or selection.get_backend()
    if name not in _chosen:
        wanted = os.environ.get("EMBER_ML_DEVICE", "").strip()
        known = available_devices(name)
        if wanted and name == selection.get_backend():
            check(name, wanted)
        _chosen[name] = wanted if wanted in known else known[0]
    return _chosen[name]


def resolve(backend: str, device: str | None) -> str:
    """Return the given device, or the default one for None."""
    return default_device(backend) if device is None else check(backend, device)
