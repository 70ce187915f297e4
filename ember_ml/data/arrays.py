"""Datasets of arrays in memory."""

from __future__ import annotations

from typing import Any

from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.data import _checks, host_arrays
from ember_ml.data.conversion import Nest, to_host
from ember_ml.data.dataset import Dataset


class Columns(Dataset):
    """Dataset of host arrays of equal length: one array, or a tuple or dict of arrays.

    Reading a batch indexes each array once.
    """

    _columns: Any
    _length: int

    def _set(self, columns: Any) -> None:
        self._length = _common_length(type(self).__name__, _named(columns))
        self._columns = columns

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Nest:
        place = _checks.index(type(self).__name__, index, self._length)
        columns = self._columns
        if isinstance(columns, dict):
            return {name: column[place] for name, column in columns.items()}
        if isinstance(columns, tuple):
            return tuple([column[place] for column in columns])
        return columns[place]

    def batch(self, indices: Any) -> Nest:
        """Return the rows of every array at the indices."""
        columns = self._columns
        take = host_arrays.take
        if isinstance(columns, dict):
            return {name: take(column, indices) for name, column in columns.items()}
        if isinstance(columns, tuple):
            return tuple([take(column, indices) for column in columns])
        return take(columns, indices)

    def __repr__(self) -> str:
        inner = ", ".join(
            f"{f'{name}: ' if isinstance(name, str) else ''}{array.dtype}{list(array.shape)}"
            for name, array in _named(self._columns).items()
        )
        return f"{type(self).__name__}({inner})"


class ArrayDataset(Columns):
    """Dataset of arrays whose first axis is the examples.

    With one array, an example is a row; with several, a tuple of rows; with a dict, a dict of rows.

    Args:
        *arrays: Arrays of NumPy or another framework, tensors or nested lists; or one dict of them.

    Example:
        >>> dataset = ArrayDataset([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 1, 0])
        >>> len(dataset)
        3
        >>> x, y = dataset.batch([2, 0])
        >>> x.tolist(), y.tolist()
        ([[5.0, 6.0], [1.0, 2.0]], [0, 0])
    """

    def __init__(self, *arrays: Any) -> None:
        if not arrays or (len(arrays) == 1 and isinstance(arrays[0], dict) and not arrays[0]):
            raise ArgumentError("ArrayDataset: pass at least one array")
        if len(arrays) == 1 and isinstance(arrays[0], dict):
            self._set({name: to_host(array) for name, array in arrays[0].items()})
        elif len(arrays) == 1:
            self._set(to_host(arrays[0]))
        else:
            self._set(tuple([to_host(array) for array in arrays]))


def _named(columns: Any) -> dict[Any, Any]:
    if isinstance(columns, dict):
        return columns
    return dict(enumerate(columns if isinstance(columns, tuple) else (columns,)))


def _common_length(where: str, columns: dict[Any, Any]) -> int:
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
