"""`python -m ember_ml`: the version, the backends and devices, which backend is active and why."""

from __future__ import annotations

from ember_ml import __version__
from ember_ml.backend import devices, selection


def describe(name: str) -> str:
    """A line about one backend."""
    try:
        module = selection.import_backend(name)
    except ImportError as error:
        return f"{name:8} not installed: {error}"
    return f"{name:8} {module.version:14} devices: {', '.join(module.devices())}"


def main() -> None:
    """Print the report."""
    print(f"Ember ML {__version__}")
    for name in selection.BACKENDS:
        print(f"  {describe(name)}")
    print(f"active: {selection.get_backend()} on {devices.default_device()}")
    print(f"because of {selection.selection_reason()}")


if __name__ == "__main__":
    main()
