"""What needs the host's memory on any backend: parsing nested lists, printing, NumPy conversion."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml._core.errors import ArgumentTypeError, ShapeError

# What Python's own numbers become: the framework-wide defaults, not NumPy's.
_PYTHON_DEFAULTS = {"float64": "float32", "complex128": "complex64", "int32": "int64"}


def _leaf(data: Any) -> Any:
    """The first element of nested sequences, or the sequences' end."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def parse(data: Any, dtype: str | None) -> tuple[np.ndarray[Any, Any], str]:
    """An array of the data, and the dtype it has (or that Python's numbers should get)."""
    if isinstance(data, (str, bytes)) or data is None or isinstance(data, (dict, set)):
        raise ArgumentTypeError(
            f"a tensor is made of numbers, not of {type(data).__name__}: {data!r:.60}"
        )
    from_python = isinstance(data, (list, tuple, range)) and isinstance(
        _leaf(data), (bool, int, float, complex, list, tuple, range)
    )
    whole = dtype is not None and dtype.startswith(("int", "uint")) and isinstance(_leaf(data), int)
    try:
        # Python's integers in the dtype asked for: exact, or an OverflowError.
        array = np.asarray(_plain(data), dtype if from_python and whole else None)
    except ValueError as error:
        raise ShapeError(f"nested sequences of unequal length make no tensor: {error}") from None
    if array.dtype.kind not in "biufc":
        if array.dtype == object and dtype is None and from_python:
            raise OverflowError(f"an integer in {data!r:.60} does not fit 64 bits")
        raise ArgumentTypeError(f"a tensor is made of numbers, not of {array.dtype}: {data!r:.60}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    name = array.dtype.name
    return array, _PYTHON_DEFAULTS.get(name, name) if from_python else name


def _plain(data: Any) -> Any:
    """Nested sequences with every tensor in them read into host memory."""
    if isinstance(data, (list, tuple)):
        return [_plain(part) for part in data]
    return data.numpy() if hasattr(data, "_backend") and hasattr(data, "numpy") else data


def as_array(array: np.ndarray[Any, Any], dtype: Any, copy: bool | None) -> np.ndarray[Any, Any]:
    """NumPy's `__array__` protocol."""
    return np.array(array, dtype=dtype, copy=copy)


def format_array(array: np.ndarray[Any, Any]) -> str:
    """The values as they are printed, elided in the middle where there are many."""
    if array.size == 0:
        return "[]"
    return np.array2string(array, separator=", ", prefix="tensor(")
