"""Plugins: components from installed packages and from modules named by the user."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from ember_ml._core.errors import EmberError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

VARIABLE = "EMBER_ML_PLUGINS"
"""Environment variable: modules or files to import, separated as in PATH."""


class PluginError(EmberError, ImportError):
    """Raised when a plugin named by the user cannot be imported."""


def load_installed(group: str) -> None:
    """Import the plugins that installed packages declare in a group of entry points."""
    from importlib import metadata  # slow to import

    for point in metadata.entry_points(group=group):
        _load(point)


def _load(point: EntryPoint) -> None:
    """Import a plugin; warn if it fails, so that the others still load."""
    try:
        loaded = point.load()
        if inspect.isfunction(loaded):
            loaded()
    except Exception as error:
        warnings.warn(
            f"the plugin {point.name!r} ({point.value}) could not be loaded: {error}",
            RuntimeWarning,
            stacklevel=2,
        )


def named() -> list[str]:
    """Return the modules and files named in the environment variable."""
    return [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


def use(name: str) -> None:
    """Import a module or file, in this process and in the processes that it starts.

    Args:
        name: A dotted module name, or the path of a file that ends in ".py".
    """
    load_named(name)
    name = str(Path(name).resolve()) if name.endswith(".py") else name
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys([*named(), name]))


def load_named(name: str) -> None:
    """Import a module by its dotted name, or a file that ends in .py, once.

    Args:
        name: For example "lab.mixers" or "mixers.py".

    Raises:
        PluginError: The module cannot be imported.
    """
    try:
        if name.endswith(".py"):
            _import_file(Path(name).resolve())
        else:
            importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise PluginError(f"the plugin {name!r} could not be imported: {error}") from error


def _import_file(path: Path) -> None:
    name = f"ember_plugin_{path.stem}"
    if getattr(sys.modules.get(name), "__file__", None) == str(path):
        return
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "every path that ends in .py has a loader"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
