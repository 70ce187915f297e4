"""Inspection of the namespace, and the constants of the array API standard."""

from __future__ import annotations

import math

from ember_ml._core import runtime
from ember_ml._core.dtype import DEFAULT_COMPLEX, DEFAULT_FLOAT, DEFAULT_INT, EmberDType
from ember_ml.backend import devices as _devices
from ember_ml.ops.dtypes import isdtype

__all__ = [
    "NamespaceInfo",
    "__array_api_version__",
    "__array_namespace_info__",
    "e",
    "inf",
    "nan",
    "newaxis",
    "pi",
]

__array_api_version__ = "2024.12"

e = math.e
inf = math.inf
nan = math.nan
newaxis = None
pi = math.pi

STANDARD_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)
"""Dtypes of the array API standard, which lacks float16 and bfloat16."""


class NamespaceInfo:
    """Inspection functions of the array API standard, for the active backend."""

    def capabilities(self) -> dict[str, bool | int | None]:
        """Return the optional features of the standard and whether they are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device of new tensors."""
        return _devices.default_device()

    def devices(self) -> list[str]:
        """Return the devices of the active backend."""
        return _devices.available_devices()

    def default_dtypes(self, *, device: str | None = None) -> dict[str, EmberDType]:
        """Return the default dtype of each kind of Python number, and of indices.

        Args:
            device: Name of a device; the answer is the same for each.
        """
        _devices.resolve(runtime.active(), device)
        return {
            "real floating": DEFAULT_FLOAT,
            "complex floating": DEFAULT_COMPLEX,
            "integral": DEFAULT_INT,
            "indexing": DEFAULT_INT,
        }

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, EmberDType]:
        """Return the dtypes of the standard that the backend supports, by name.

        Args:
            device: Name of a device; the answer is the same for each.
            kind: Restrict to a kind, or a tuple of kinds, as in `isdtype`.
        """
        backend = runtime.active()
        _devices.resolve(backend, device)
        return {
            dtype.name: dtype
            for dtype in runtime.dtypes_of(backend)
            if dtype.name in STANDARD_DTYPES and (kind is None or isdtype(dtype, kind))
        }


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  (the standard's name)
    """Return the inspection functions of the array API standard."""
    return NamespaceInfo()
