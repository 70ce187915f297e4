"""Datasets of arrays in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeAlias

import numpy as np

from ember_ml._core.convert import is_framework_array
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data import host_arrays
from ember_ml.data.conversion import Indices, Pytree, to_host
from ember_ml.data.dataset import Dataset
from ember_ml.data.errors import check_index

Arrays: TypeAlias = np.ndarray | tuple["Arrays", ...] | dict[Hashable, "Arrays"]
"""A host array, or tuples and dicts of host arrays at any depth."""


class Columns(Dataset):
    """Dataset of host arrays of equal length: one array, or nested tuples and dicts of arrays.

    Reading a batch indexes each array once.
    """

    _columns: Arrays
    _length: int

    def _set(self, columns: Arrays) -> None:
        named = _named(columns)
        if not named:
            raise ArgumentError(f"{type(self).__name__}: pass at least one array")
        self._length = _common_length(type(self).__name__, named)
        self._columns = columns

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Pytree:
        index = check_index(type(self).__name__, index, self._length)
        return _map(lambda column: column[index], self._columns)

    def batch(self, indices: Indices) -> Pytree:
        """Return the rows of every array at the indices.

        Args:
            indices: Array or sequence of integers.
        """
        return _map(lambda column: host_arrays.take(column, indices), self._columns)

    def __repr__(self) -> str:
        inner = ", ".join(
            f"{f'{name}: ' if isinstance(name, str) else ''}{array.dtype}{list(array.shape)}"
            for name, array in _named(self._columns).items()
        )
        return f"{type(self).__name__}({inner})"


class ArrayDataset(Columns):
    """Dataset of arrays whose first axis is the examples.

    With one array, an example is a row; with several, a tuple of rows; with a dict, a dict of rows.
    Tuples and dicts may be nested: `ArrayDataset((x, timespans), y)` has examples
    `((x[i], timespans[i]), y[i])`.

    Args:
        *arrays: Arrays of NumPy or another framework, tensors or nested lists of numbers; or tuples
            and dicts of them.

    Example:
        >>> dataset = ArrayDataset([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 1, 0])
        >>> len(dataset)
        3
        >>> x, y = dataset.batch([2, 0])
        >>> x.tolist(), y.tolist()
        ([[5.0, 6.0], [1.0, 2.0]], [0, 0])
    """

    def __init__(self, *arrays: object) -> None:
        columns = tuple([self._converted(at, array) for at, array in enumerate(arrays)])
        self._set(columns[0] if len(columns) == 1 else columns)

    def _converted(self, at: int, array: object) -> Arrays:
        """Return an argument as host arrays; an error says which one it is."""
        try:
            return _to_host(array)
        except (ArgumentTypeError, ShapeError) as error:
            raise type(error)(f"{type(self).__name__}: array {at}: {error}") from None


def is_nest(value: object) -> bool:
    """Return whether a value is a dict, or a tuple of arrays, at any depth.

    A tuple of numbers is an array, and so is a list.

    Args:
        value: Value to check.
    """
    if isinstance(value, Mapping):
        return True
    if not isinstance(value, tuple) or not value:
        return False
    first = value[0]
    return is_nest(first) or is_framework_array(first)


def _to_host(value: object) -> Arrays:
    if isinstance(value, Mapping):
        if not value:
            raise ArgumentError("ArrayDataset: a dict of arrays must not be empty")
        return {name: _to_host(part) for name, part in value.items()}
    if is_nest(value):
        return tuple([_to_host(part) for part in value])  # type: ignore[attr-defined]
    return to_host(value)


def _map(function: Callable[[np.ndarray], Pytree], columns: Arrays) -> Pytree:
    # `tree.map_leaves` takes three times as long
    if isinstance(columns, dict):
        return {name: _map(function, column) for name, column in columns.items()}
    if isinstance(columns, tuple):
        return tuple([_map(function, column) for column in columns])
    return function(columns)


def _named(columns: Arrays) -> dict[Hashable, np.ndarray]:
    """Return the arrays by name: key or position, or the path of both for nested ones."""
    if isinstance(columns, np.ndarray):
        return {0: columns}
    parts = columns.items() if isinstance(columns, dict) else enumerate(columns)
    named: dict[Hashable, np.ndarray] = {}
    for name, part in parts:
        if isinstance(part, np.ndarray):
            named[name] = part
        else:
            named |= {f"{name}.{inner}": array for inner, array in _named(part).items()}
    return named


def _common_length(where: str, columns: dict[Hashable, np.ndarray]) -> int:
    first, *_ = columns
    for name, column in columns.items():
        if column.ndim == 0:
            raise ShapeError(
                f"{where}: array {name!r} is 0-dimensional; its first axis must be the examples"
            )
        if len(column) != len(columns[first]):
            raise ShapeError(
                f"{where}: the arrays must have equal lengths, but array {first!r} has "
                f"{len(columns[first])} examples and array {name!r} has {len(column)}"
            )
    return len(columns[first])
