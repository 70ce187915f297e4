"""Host arrays (NumPy): parsing of nested lists, and printing."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ember_ml._core.dtype import (
    DTYPES,
    INTEGER_RANGES,
    PYTHON_TYPES,
    EmberDType,
    promote,
    promote_scalar,
)
from ember_ml._core.errors import ArgumentTypeError, ShapeError


def _leaves(data: Any) -> Iterator[Any]:
    """Yield the elements of nested sequences."""
    if isinstance(data, (list, tuple)):
        for part in data:
            yield from _leaves(part)
    else:
        yield data


def _is_tensor(data: Any) -> bool:
    return hasattr(data, "_tag") and hasattr(data, "numpy")


def _plain(data: Any) -> Any:
    """Return nested sequences with every tensor as a host array."""
    if isinstance(data, (list, tuple)):
        return [_plain(part) for part in data]
    return data.numpy() if _is_tensor(data) else data


def _dtype_of_leaves(leaves: list[Any]) -> str | None:
    """Return the common dtype of Python numbers and tensors; None if there is other data."""
    strong = [leaf.dtype for leaf in leaves if _is_tensor(leaf)]
    weak = {type(leaf) for leaf in leaves if not _is_tensor(leaf)}
    if not weak <= set(PYTHON_TYPES):
        return None
    by_kind = [kind for kind in PYTHON_TYPES if kind in weak]
    start = functools.reduce(promote, strong) if strong else PYTHON_TYPES[by_kind[0]]
    return functools.reduce(promote_scalar, by_kind, start).name


def _array(data: Any, dtype: str | None) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(_plain(data), dtype)
    except OverflowError:
        raise OverflowError(f"an integer in {data!r:.60} does not fit {dtype}") from None
    except ValueError as error:
        raise ShapeError(f"nested sequences must have equal lengths: {error}") from None


def _parse_sequence(data: Any, dtype: str | None) -> tuple[np.ndarray[Any, Any], str]:
    leaves = list(_leaves(data))
    inferred = _dtype_of_leaves(leaves) if leaves else "float32"
    if inferred is None:
        array = _array(data, None)
        return array, array.dtype.name
    target = dtype or inferred
    # Integers in an integer dtype are exact or raise an OverflowError.
    exact = target.startswith(("int", "uint")) and all(isinstance(leaf, int) for leaf in leaves)
    array = _array(data, target if exact else None)
    return array.astype(np.float64) if array.dtype == object and not exact else array, inferred


def check_range(array: np.ndarray[Any, Any], dtype: EmberDType) -> None:
    """Raise an OverflowError if a number is NaN or out of range for an integer dtype."""
    if not dtype.is_integer or array.dtype.kind not in "iuf" or not array.size:
        return
    if array.dtype.kind != "f" and np.can_cast(array.dtype, dtype.name):
        return
    low, high = INTEGER_RANGES[dtype]
    for value in (array.min(), array.max()):
        if not low - 1 < (number := value.item()) < high + 1:
            raise OverflowError(f"{number} does not fit {dtype} ({low} to {high})")


def check_unmasked(data: object) -> None:
    """Raise an ArgumentTypeError if data is an array of NumPy with masked elements."""
    if type(data) is np.ndarray:
        return
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        raise ArgumentTypeError(
            "a tensor has no masked elements; use data.filled(value), and pass the mask as weights"
        )


def parse(data: Any, dtype: str | None) -> tuple[np.ndarray[Any, Any], str]:
    """Return the data as a NumPy array, and its dtype (for Python numbers the default one).

    Args:
        data: Nested sequences, a number, or an object that NumPy can convert.
        dtype: Dtype name that the caller will cast to; None to infer it.
    """
    if data is None or isinstance(data, (str, bytes, dict, set)):
        kind = type(data).__name__
        raise ArgumentTypeError(f"a tensor takes numbers, not {kind}: {data!r:.60}")
    if isinstance(data, (list, tuple, range)):
        array, name = _parse_sequence(list(data) if isinstance(data, range) else data, dtype)
    else:
        array = np.asarray(data)
        name = array.dtype.name
        check_unmasked(data)
    if array.dtype.kind not in "biufc" or name not in DTYPES:
        raise ArgumentTypeError(f"a tensor takes numbers, not {array.dtype}: {data!r:.60}")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")), name


def as_array(array: np.ndarray[Any, Any], dtype: Any, copy: bool | None) -> np.ndarray[Any, Any]:
    """Return the array for NumPy's `__array__` protocol."""
    return np.array(array, dtype=dtype, copy=copy)


def format_array(array: np.ndarray[Any, Any]) -> str:
    """Return the values as text, abbreviated if there are many."""
    if array.size == 0:
        return "[]"
    return np.array2string(array, separator=", ", prefix="tensor(")
