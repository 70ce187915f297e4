"""Selection of the backend on which new tensors are created.

In this order: a `use_backend` scope (of this thread or task), `set_backend`, the environment
variable EMBER_ML_BACKEND, the file ~/.ember/backend, and the best backend of this machine.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import importlib.util
import inspect
import os
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from ember_ml._core.errors import (
    ArgumentTypeError,
    BackendNotInstalledError,
    UnknownBackendError,
)
from ember_ml._core.requirements import REQUIREMENTS

if TYPE_CHECKING:
    from ember_ml.backend.interface import Backend

F = TypeVar("F", bound=Callable[..., Any])


class BackendEntry(NamedTuple):
    """Row of the table of backends.

    Args:
        package: Import name of the framework.
        requirement: What pip installs for it.
    """

    package: str
    requirement: str


BACKENDS: dict[str, BackendEntry] = {
    "numpy": BackendEntry("numpy", REQUIREMENTS["numpy"]),
    "torch": BackendEntry("torch", REQUIREMENTS["torch"]),
    "mlx": BackendEntry("mlx", REQUIREMENTS["mlx"]),
}
"""All backends. A new one is a folder next to this file and a row here."""

_chosen: str | None = None
_reason = ""
_scopes: ContextVar[tuple[str, ...]] = ContextVar("ember_ml_backend", default=())
# Number of open scopes of all threads. Without any, the ContextVar, which no compiler traces, is
# not read.
_open_scopes = 0
_lock = threading.Lock()


def backend_file() -> Path:
    """Return the file to which `set_backend(name, persist=True)` writes."""
    return Path.home() / ".ember" / "backend"


def check_name(name: str) -> str:
    """Return the name, interned; raise an UnknownBackendError if no backend has it."""
    if name in BACKENDS:
        return sys.intern(name)  # names are compared by identity
    close = difflib.get_close_matches(str(name), BACKENDS, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise UnknownBackendError(
        f"unknown backend {name!r}; {hint}known backends are {', '.join(BACKENDS)}"
    )


def is_installed(name: str) -> bool:
    """Return whether the backend's framework is installed, without importing it."""
    return importlib.util.find_spec(BACKENDS[check_name(name)].package) is not None


def available() -> list[str]:
    """Return the names of the backends whose frameworks are installed."""
    return [name for name in BACKENDS if is_installed(name)]


def import_backend(name: str) -> Backend:
    """Import and return the backend's module, and with it the framework.

    Args:
        name: Name in `BACKENDS`.
    """
    entry = BACKENDS[check_name(name)]
    try:
        return cast("Backend", importlib.import_module(f"ember_ml.backend.{name}"))
    except ImportError as error:
        raise BackendNotInstalledError(
            f"the {name} backend needs the package {entry.package!r}, which cannot be imported "
            f"({error}); install it with: pip install '{entry.requirement}'"
        ) from error


def _candidates() -> list[tuple[int, str, str, str]]:
    """Return (rank, backend, device, reason) of the installed backends, the best first."""
    candidates = []
    for name in available():
        detect = importlib.import_module(f"ember_ml.backend.{name}.detect")
        with contextlib.suppress(ImportError, OSError):  # a broken installation
            rank, device, reason = detect.detect()
            candidates.append((rank, name, device, reason))
    return sorted(candidates, reverse=True)


def auto_select_backend() -> tuple[str, str]:
    """Return the best backend of this machine and its device, whichever backend is active."""
    _, name, device, _ = _candidates()[0]
    return name, device


def _configured() -> tuple[str, str] | None:
    """Return the backend that the environment or the file names, and the reason."""
    if name := os.environ.get("EMBER_ML_BACKEND", "").strip():
        return check_name(name), "the environment variable EMBER_ML_BACKEND"
    with contextlib.suppress(OSError, UnicodeDecodeError, RuntimeError):  # RuntimeError: no home
        name = _first_bytes(backend_file()).decode().strip()
        if name in BACKENDS and is_installed(name):
            return check_name(name), f"the file {backend_file()}"
    return None


def _first_bytes(path: Path) -> bytes:
    """Return the start of a regular file; nothing of a pipe, which would block."""
    if not path.is_file():
        return b""
    with open(path, "rb") as file:
        return file.read(256)


def _resolve() -> str:
    global _chosen, _reason
    with _lock:
        if _chosen is None:
            configured = _configured()
            if configured is not None:
                _chosen, _reason = configured
            else:
                _, _chosen, _, why = _candidates()[0]
                _reason = f"auto-detection: {why}"
        return _chosen


def get_backend() -> str:
    """Return the name of the active backend, on which new tensors are created."""
    if _open_scopes:
        scopes = _scopes.get()
        if scopes:
            return scopes[-1]
    return _chosen or _resolve()


def scoped_backend() -> str | None:
    """Return the backend of the innermost `use_backend` scope; None outside any scope."""
    scopes = _scopes.get() if _open_scopes else ()
    return scopes[-1] if scopes else None


def selection_reason() -> str:
    """Return the reason why the active backend was selected."""
    name = get_backend()
    if _open_scopes and _scopes.get():
        return f"use_backend({name!r})"
    return _reason


def get_backend_module() -> Backend:
    """Return the module of the active backend."""
    return import_backend(get_backend())


def set_backend(backend: str, *, persist: bool = False) -> None:
    """Create new tensors on `backend` from now on, in all threads; existing tensors stay.

    Args:
        backend: Name in `BACKENDS`.
        persist: Whether to write the choice to ~/.ember/backend, for later processes.
    """
    global _chosen, _reason
    backend = check_name(backend)
    import_backend(backend)
    with _lock:
        _chosen, _reason = backend, f"set_backend({backend!r})"
    if persist:
        path = backend_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(backend + "\n", encoding="utf-8")
        temporary.replace(path)


class use_backend:  # noqa: N801  (a context manager, named as a function)
    """Create new tensors on `backend` within a `with` block or a decorated function.

    Only the current thread or asyncio task is affected.

    Args:
        backend: Name in `BACKENDS`.

    Example:
        >>> with use_backend("numpy"):
        ...     get_backend()
        'numpy'
    """

    def __init__(self, backend: str) -> None:
        self.backend = check_name(backend)
        import_backend(backend)

    def __enter__(self) -> use_backend:
        global _open_scopes
        with _lock:
            _open_scopes += 1
        _scopes.set((*_scopes.get(), self.backend))
        return self

    def __exit__(self, *exception: object) -> None:
        global _open_scopes
        _scopes.set(_scopes.get()[:-1])
        with _lock:
            _open_scopes -= 1

    def __call__(self, function: F) -> F:
        """Decorate a function or coroutine function; every call opens its own scope."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ArgumentTypeError(
                f"use_backend cannot decorate the generator {function.__qualname__}: its scope "
                "would stay open in the caller between two values; open scopes inside the generator"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def scoped(*args: Any, **kwargs: Any) -> Any:
                with use_backend(self.backend):
                    return await function(*args, **kwargs)
        else:

            @functools.wraps(function)
            def scoped(*args: Any, **kwargs: Any) -> Any:
                with use_backend(self.backend):
                    return function(*args, **kwargs)

        return scoped  # type: ignore[return-value]
