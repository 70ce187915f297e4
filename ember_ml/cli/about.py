"""`ember backends` and `ember info`: versions and devices of this machine."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from typing import NotRequired, TypedDict

from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings


class BackendInfo(TypedDict):
    """Description of a backend; `install` if it is not installed, the other keys if it is."""

    name: str
    installed: bool
    active: bool
    install: NotRequired[str]
    version: NotRequired[str]
    devices: NotRequired[list[str]]
    device: NotRequired[str]


def describe_backends() -> list[BackendInfo]:
    """Return the version and devices of every backend, or how to install it."""
    from ember_ml.backend import devices, selection

    active = selection.get_backend()
    infos = []
    for name, entry in selection.BACKENDS.items():
        info: BackendInfo = {"name": name, "installed": False, "active": name == active}
        try:
            module = selection.import_backend(name)
        except ImportError:
            info["install"] = f"pip install '{entry.requirement}'"
        else:
            info["installed"] = True
            info["version"] = module.version
            info["devices"] = list(module.devices())
            info["device"] = devices.default_device(name)
        infos.append(info)
    return infos


def backends(settings: Settings, as_json: JsonOption = False) -> None:
    """List the backends: installed versions, devices, and which one is active."""
    infos = describe_backends()
    if as_json:
        output.write_json({"backends": infos, "reason": _reason(settings)})
        return
    rows = [
        (
            info["name"],
            "active" if info["active"] else "",
            info.get("version", "not installed"),
            ", ".join(info.get("devices", ())) or info["install"],
        )
        for info in infos
    ]
    console = output.console()
    console.print(output.table(rows, "backend", "", "version", "devices"))
    console.print(f"The active backend was selected by {_reason(settings)}.")


def _reason(settings: Settings) -> str:
    from ember_ml.backend import selection

    return "--backend" if settings.backend is not None else selection.selection_reason()


def info(settings: Settings, as_json: JsonOption = False) -> None:
    """Show the versions of Ember ML, Python and all dependencies, for a bug report."""
    from ember_ml import __version__, _native

    data = {
        "ember_ml": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "kernels": _native.status(),
        "backends": describe_backends(),
        "chosen_by": _reason(settings),
        "dependencies": dependencies(),
    }
    if as_json:
        output.write_json(data)
        return
    console = output.console()
    rows = [(key, str(value)) for key, value in data.items() if not isinstance(value, (list, dict))]
    console.print(output.table(rows))
    console.print()
    backends(settings)
    console.print()
    console.print(output.table(dependencies().items(), "package", "version"))


def dependencies() -> dict[str, str]:
    """Return the versions of the installed packages that Ember ML requires or can use."""
    from importlib import metadata

    try:
        requirements = metadata.requires("ember-ml") or []
    except metadata.PackageNotFoundError:  # running from source without installation
        requirements = []
    names = {re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in requirements}
    versions = {}
    for name in sorted(names, key=str.lower):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions
