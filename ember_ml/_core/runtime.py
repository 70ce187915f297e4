"""Loaded backends, and the tables that connect them with the frontend."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ember_ml._core.dtype import DTYPES, EmberDType
from ember_ml._core.errors import UnsupportedDTypeError
from ember_ml.backend import selection

if TYPE_CHECKING:
    from ember_ml.backend.interface import Backend

LOADED: dict[str, Backend] = {}
"""Backend modules by name, filled by `load`. The backend of a tensor is always loaded."""

DTYPE_OF: dict[Any, EmberDType] = {}
"""Native dtype -> EmberDType, of all loaded backends."""

TAG_OF: dict[str, dict[Any, str]] = {}
"""Backend -> native dtype -> tag: one string for backend and dtype, compared by identity."""

DTYPE_OF_TAG: dict[str, EmberDType] = {}
"""Tag -> EmberDType."""

INTEGER_TAGS: set[str] = set()
"""Tags of the integer dtypes, which index tensors have."""

READERS: dict[str, Callable[[Any, Any], Any]] = {}
"""Backend -> function that reads a key of ints, slices, None and Ellipsis."""

NATIVE: dict[str, Mapping[str, Any]] = {}
"""Backend -> name of a dtype -> native dtype."""

_BACKEND_OF_TYPE: dict[type, str] = {}
"""Native array type -> backend, of the types seen so far."""

on_load: list[Callable[[str], None]] = []
"""Functions called with the name of each backend when it is loaded."""

_lock = threading.RLock()


def tag(backend: str, dtype: EmberDType) -> str:
    """Return the tag of the tensors of a backend and dtype."""
    return sys.intern(f"{backend}:{dtype.name}")


def load(name: str) -> Backend:
    """Return the backend of a name; import it on first use."""
    try:
        return LOADED[name]
    except KeyError:
        pass
    with _lock:
        if name not in LOADED:
            module = selection.import_backend(name)
            NATIVE[name] = module.DTYPES
            dtypes = dtypes_of(name)
            DTYPE_OF.update({NATIVE[name][dtype.name]: dtype for dtype in dtypes})
            TAG_OF[name] = {NATIVE[name][dtype.name]: tag(name, dtype) for dtype in dtypes}
            DTYPE_OF_TAG.update({tag(name, dtype): dtype for dtype in dtypes})
            INTEGER_TAGS.update(tag(name, dtype) for dtype in dtypes if dtype.is_integer)
            READERS[name] = module.read_plain
            for hook in on_load:
                hook(name)
            LOADED[name] = module
        return LOADED[name]


def backend_of(data: object) -> str | None:
    """Return the loaded backend that a native array belongs to; None for anything else."""
    kind = type(data)
    name = _BACKEND_OF_TYPE.get(kind)
    if name is None:
        for known, module in tuple(LOADED.items()):  # other threads may load meanwhile
            if isinstance(data, module.ARRAY):
                name = _BACKEND_OF_TYPE[kind] = known
                break
    return name


def active() -> str:
    """Return the name of the active backend, after loading it."""
    name = selection.get_backend()
    if name not in LOADED:
        load(name)
    return name


def host() -> ModuleType:
    """Return `ember_ml._core.host`, imported on first use since it imports NumPy."""
    from ember_ml._core import host

    return host


def dtypes_of(backend: str) -> list[EmberDType]:
    """Return the dtypes that a backend has."""
    return [DTYPES[name] for name in NATIVE[backend]]


def native_dtype(backend: str, dtype: EmberDType) -> Any:
    """Return the backend's dtype object; raise `UnsupportedDTypeError` if it has none."""
    try:
        return NATIVE[backend][dtype.name]
    except KeyError:
        names = ", ".join(NATIVE[backend])
        raise UnsupportedDTypeError(
            f"the {backend} backend has no {dtype}; it has {names}"
        ) from None
