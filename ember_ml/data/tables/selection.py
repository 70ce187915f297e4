"""Selection of columns of a table, and their conversion to host arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ember_ml._core.convert import as_dtype
from ember_ml._core.errors import ArgumentError
from ember_ml._core.requirements import import_optional
from ember_ml._core.types import DTypeLike
from ember_ml.data.arrays import Arrays
from ember_ml.data.conversion import Indices
from ember_ml.data.errors import DataFileError
from ember_ml.registry.base import close_matches

if TYPE_CHECKING:
    import pyarrow

PURPOSE = "data.tables"
Classes: TypeAlias = tuple[str, ...]
_MISSING_HINT = "; pass missing='nan', or remove the row"


@dataclasses.dataclass(frozen=True)
class Selection:
    """Columns of a table that an example consists of.

    Args:
        where: Name of the class in errors.
        columns: Names of the columns of the inputs.
        target: Name of the column of the target. None: an example has no target.
        stack: Whether the inputs are one array instead of a dict.
        dtype: Dtype of floating-point values. None: that of the table.
        missing: "raise", or "nan" for columns of numbers.
        classes: Classes of a target of strings, in the order of their numbers.
    """

    where: str
    columns: tuple[str, ...]
    target: str | None
    stack: bool
    dtype: str | None
    missing: str
    classes: Classes | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns that are read."""
        target = () if self.target is None else (self.target,)
        return tuple(dict.fromkeys((*self.columns, *target)))

    def convert(self, table: pyarrow.Table, source: str, rows: Indices | None = None) -> Arrays:
        """Return the arrays of a table: the inputs, or (inputs, targets).

        Args:
            table: The table, with the selected columns.
            source: Name of the file in errors.
            rows: Number of each row in the file, from 0 on. Default: those of the table.
        """
        columns = {name: self._array(table, name, source, rows) for name in self.columns}
        inputs: Arrays = self._stacked(columns, source) if self.stack else dict(columns.items())
        if self.target is None:
            return inputs
        targets = self._array(table, self.target, source, rows)
        if targets.dtype == object and self.classes is not None:
            targets = self._numbers(targets, source, rows)
        return inputs, targets

    def _array(
        self, table: pyarrow.Table, name: str, source: str, rows: Indices | None
    ) -> np.ndarray:
        """Return a column as an array; strings and lists are objects."""
        pa = import_optional("pyarrow", PURPOSE)
        column = table.column(name).combine_chunks()
        kind = column.type
        if pa.types.is_dictionary(kind):
            column, kind = column.dictionary_decode(), kind.value_type
        is_number = _is_number(kind)
        if column.null_count and not (is_number and self.missing == "nan"):
            at = column.is_null().to_pylist().index(True)
            raise self._error(source, rows, at, name, "is missing", _MISSING_HINT)
        if not is_number:
            return _objects(column)
        if pa.types.is_decimal(kind) or column.null_count:
            column = column.cast(pa.float64())
        array = column.to_numpy(zero_copy_only=False)
        if array.dtype.kind != "f":
            return array
        if self.missing == "raise" and np.isnan(array).any():
            raise self._error(
                source, rows, int(np.isnan(array).argmax()), name, "is NaN", _MISSING_HINT
            )
        return array if self.dtype is None else array.astype(self.dtype, copy=False)

    def _stacked(self, columns: Mapping[str, np.ndarray], source: str) -> np.ndarray:
        """Return columns of numbers as one array (rows, columns)."""
        for name, column in columns.items():
            if column.dtype == object:
                if not len(column):
                    raise DataFileError(f"{source}: the table has no rows")
                value = column[0]
                raise DataFileError(
                    f"{source}: column {name!r} has {type(value).__name__} values, which cannot be "
                    "stacked with numbers; select other columns, or pass stack=False for dicts"
                )
        stacked = np.stack(list(columns.values()), axis=1)
        return stacked if self.dtype is None else stacked.astype(self.dtype, copy=False)

    def _numbers(self, values: np.ndarray, source: str, rows: Indices | None) -> np.ndarray:
        """Return the number of the class of each value."""
        numbers = {value: number for number, value in enumerate(self.classes or ())}
        unknown = next((at for at, value in enumerate(values) if value not in numbers), None)
        if unknown is not None:
            problem = f"is {values[unknown]!r:.60}, which is not among the {len(numbers)} classes"
            if values[unknown] == "":
                problem = "is empty; remove the row, or pass classes with ''"
            raise self._error(source, rows, unknown, str(self.target), problem)
        return np.array([numbers[value] for value in values], np.int64)

    def _error(
        self,
        source: str,
        rows: Indices | None,
        at: int,
        name: str,
        problem: str,
        hint: str = "",
    ) -> DataFileError:
        row = at if rows is None else int(rows[at])
        return DataFileError(
            f"{source}: the value in row {row} (from 0), column {name!r} {problem}{hint}"
        )


def select(
    where: str,
    available: Iterable[str],
    columns: Sequence[str] | None,
    target: str | None,
    *,
    stack: bool | None,
    dtype: DTypeLike | None,
    missing: str,
) -> Selection:
    """Return the checked selection of columns.

    Args:
        where: Name of the class in errors.
        available: Names of the columns of the table.
        columns: Names of the columns of the inputs. None: all but the target.
        target: Name of the column of the target. None: there is none.
        stack: Whether the inputs are one array. None: if there is a target.
        dtype: Dtype of floating-point values.
        missing: "raise" or "nan".
    """
    names = tuple(available)
    if missing not in ("raise", "nan"):
        raise ArgumentError(f"{where}: missing must be 'raise' or 'nan', not {missing!r}")
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise DataFileError(f"{where}: the table has two columns named {duplicate!r}")
    if isinstance(columns, str):
        columns = [columns]
    inputs = tuple(name for name in names if name != target) if columns is None else tuple(columns)
    for name in inputs if target is None else (*inputs, target):
        if name not in names:
            hint = close_matches(str(name), names) or f"; the columns are {', '.join(names):.200}"
            raise ArgumentError(f"{where}: there is no column {name!r}{hint}")
    if not inputs:
        raise ArgumentError(f"{where}: select at least one column")
    kind = None if dtype is None else as_dtype(dtype).name
    stacked = target is not None if stack is None else stack
    return Selection(where, inputs, target, stacked, kind, missing)


def classes_of(values: Iterable[str | None]) -> Classes:
    """Return the sorted different values of a column; an empty string is a missing value.

    Args:
        values: Values of the column.
    """
    return tuple(sorted({value for value in values if value}))


def is_text(kind: pyarrow.DataType) -> bool:
    """Return whether a column has strings.

    Args:
        kind: Type of the column.
    """
    pa = import_optional("pyarrow", PURPOSE)
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests: tuple[Callable[[object], bool], ...] = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
    )
    return any(test(value) for test in tests)


def _is_number(kind: pyarrow.DataType) -> bool:
    types = import_optional("pyarrow", PURPOSE).types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)


def _objects(column: pyarrow.Array) -> np.ndarray:
    """Return values that are not numbers: strings, or arrays of the lists of a column."""
    objects = np.empty(len(column), object)
    for at, value in enumerate(column.to_pylist()):
        objects[at] = np.asarray(value) if isinstance(value, list) else value
    return objects
