"""`ember backends` and `ember info`: what is on this machine."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from typing import Any

from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings


def describe_backends() -> list[dict[str, Any]]:
    """Every backend: its version and devices, or how to install it."""
    from ember_ml.backend import devices, selection

    active = selection.get_backend()
    found = []
    for name, entry in selection.BACKENDS.items():
        known: dict[str, Any] = {"name": name, "installed": False, "active": name == active}
        try:
            module = selection.import_backend(name)
        except ImportError:
            known["install"] = f"pip install '{entry.requirement}'"
        else:
            known |= {"installed": True, "version": module.version}
            known |= {"devices": list(module.devices()), "device": devices.default_device(name)}
        found.append(known)
    return found


def backends(settings: Settings, as_json: JsonOption = False) -> None:
    """The backends: which are installed, on which devices they compute, which one is active."""
    found = describe_backends()
    if as_json:
        output.write_json({"backends": found, "reason": _reason(settings)})
        return
    rows = [
        (
            each["name"],
            "active" if each["active"] else "",
            each.get("version", "not installed"),
            ", ".join(each.get("devices", ())) or each["install"],
        )
        for each in found
    ]
    console = output.console()
    console.print(output.table(rows, "backend", "", "version", "devices"))
    console.print(f"The active one was chosen by {_reason(settings)}.")


def _reason(settings: Settings) -> str:
    from ember_ml.backend import selection

    return "--backend" if settings.backend is not None else selection.selection_reason()


def info(settings: Settings, as_json: JsonOption = False) -> None:
    """The versions of everything, for a report of a bug."""
    from ember_ml import __version__

    data = {
        "ember_ml": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
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
    """The versions of the packages that Ember ML can use, as far as they are installed."""
    from importlib import metadata

    try:
        wanted = metadata.requires("ember-ml") or []
    except metadata.PackageNotFoundError:  # the source, which nobody has installed
        wanted = []
    names = {re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in wanted}
    found = {}
    for name in sorted(names, key=str.lower):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
