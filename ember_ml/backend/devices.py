"""The default device of each backend."""

from __future__ import annotations

import os

from ember_ml._core.errors import DeviceError
from ember_ml.backend import selection

_chosen: dict[str, str] = {}


def available_devices(backend: str | None = None) -> list[str]:
    """The devices of a backend (the active one unless named), the default first."""
    return list(selection.import_backend(backend or selection.get_backend()).devices())


def check(backend: str, device: str) -> str:
    """The device, if the backend has it."""
    known = available_devices(backend)
    if device in known or (device.partition(":")[0] in known):
        return device
    raise DeviceError(f"the {backend} backend has no device {device!r}; it has {', '.join(known)}")


def set_device(device: str, backend: str | None = None) -> None:
    """Make new tensors of a backend (the active one unless named) on `device` from now on."""
    name = backend or selection.get_backend()
    _chosen[name] = check(name, device)


def default_device(backend: str | None = None) -> str:
    """Where new tensors of a backend (the active one unless named) are made."""
    name = backend or selection.get_backend()
    if name not in _chosen:
        wanted = os.environ.get("EMBER_ML_DEVICE", "").strip()
        known = available_devices(name)
        if wanted and name == selection.get_backend():
            check(name, wanted)
        _chosen[name] = wanted if wanted in known else known[0]
    return _chosen[name]


def resolve(backend: str, device: str | None) -> str:
    """The device asked for, or the default."""
    return default_device(backend) if device is None else check(backend, device)
