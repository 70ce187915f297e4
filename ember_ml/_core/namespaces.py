"""Namespaces of packages: names that are imported on first use, and what `dir` lists."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

_importing = threading.RLock()


def import_module(name: str) -> ModuleType:
    """Import a module of Ember on first use, one thread at a time.

    Two threads that import a package and a module inside it can otherwise wait for each other,
    which Python reports as a deadlock. An import inside another one does not wait: its thread
    holds Python's lock of the outer module.

    Args:
        name: Full name of the module.
    """
    if _is_importing():
        return importlib.import_module(name)
    with _importing:
        return importlib.import_module(name)


def _is_importing() -> bool:
    """Return whether this thread is executing an import statement."""
    frame = sys._getframe()
    while (outer := frame.f_back) is not None:
        frame = outer
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
    return False


def attach(
    package: str, names: dict[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package that imports some names on first use.

    Args:
        package: `__name__` of the package.
        names: Name -> the module that holds it, or that is it.
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        module = names.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        loaded = import_module(module)
        value = loaded if module == f"{package}.{name}" else getattr(loaded, name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(sys.modules[package]), *names})

    return __getattr__, __dir__


def without_files(package: str, *namespaces: str) -> Callable[[], list[str]]:
    """Return `__dir__` of a package, which lists its names but not the files that define them.

    Args:
        package: `__name__` of the package.
        namespaces: Submodules that are listed.
    """

    def __dir__() -> list[str]:  # noqa: N807
        return sorted(
            name
            for name, value in vars(sys.modules[package]).items()
            if name in namespaces
            or name.startswith("__")
            or not (isinstance(value, ModuleType) or name.startswith("_") or name == "annotations")
        )

    return __dir__
