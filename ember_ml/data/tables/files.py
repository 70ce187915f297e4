"""Datasets of CSV and Parquet files."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, EmberError
from ember_ml._core.requirements import import_optional
from ember_ml._core.types import DTypeLike
from ember_ml.data.arrays import Arrays, Columns
from ember_ml.data.conversion import Indices, Pytree
from ember_ml.data.errors import DataFileError
from ember_ml.data.files import Paths, existing_files
from ember_ml.data.tables.selection import (
    PURPOSE,
    Classes,
    Selection,
    classes_of,
    is_text,
    select,
)

if TYPE_CHECKING:
    import pyarrow


_LARGEST_BLOCK = 1 << 30
"""Maximum number of bytes of a row."""
_END = 2048
"""Number of bytes at the end of a file that are compared with the last value."""


class TableDataset(Columns):
    """Dataset of the rows of table files, held in memory as one array for each column.

    An example is a dict with the value of each column, or (inputs, target) with a target.

    Args:
        paths: A file, or several with the same columns.
        columns: Names of the columns of the inputs. Default: all but the target.
        target: Name of the column of the target. Strings become the numbers of their classes, in
            sorted order; see `classes`. Default: an example has no target.
        stack: Whether the inputs are one array (columns,) instead of a dict. Default: whether there
            is a target.
        dtype: Dtype of floating-point values and of stacked inputs. None: that of the table.
        missing: What to do with missing values and NaN: "raise" an error that names row and column,
            or "nan" in columns of numbers.
        classes: Classes of the target, such as those of the training data. Default: the values of
            the column.
    """

    def __init__(
        self,
        paths: Paths,
        columns: Sequence[str] | None = None,
        target: str | None = None,
        *,
        stack: bool | None = None,
        dtype: DTypeLike | None = "float32",
        missing: str = "raise",
        classes: Sequence[str] | None = None,
    ) -> None:
        where = type(self).__name__
        self.paths = existing_files(where, paths)
        names = self._names(self.paths[0])
        selection = select(where, names, columns, target, stack=stack, dtype=dtype, missing=missing)
        tables = [self._checked_table(path, selection) for path in self.paths]
        self.classes = None if classes is None else tuple(classes)
        """Classes of a target of strings, in the order of their numbers; None for numbers."""
        if target is not None and any(is_text(table.column(target).type) for table in tables):
            self.classes = self.classes or _all_classes(tables, target)
        elif classes is not None:
            raise ArgumentError(f"{where}: classes are for a target of strings")
        self.selection = dataclasses.replace(selection, classes=self.classes)
        parts = [
            self.selection.convert(table, str(path))
            for path, table in zip(self.paths, tables, strict=True)
        ]
        self._set(_concatenate(parts))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of the inputs."""
        return self.selection.columns

    def _checked_table(self, path: Path, selection: Selection) -> pyarrow.Table:
        names = self._names(path)
        absent = next((name for name in selection.names if name not in names), None)
        if absent is not None:
            raise DataFileError(f"{path}: there is no column {absent!r}, which {self.paths[0]} has")
        with _named_errors(path):
            return self._table(path, selection.names)

    @abc.abstractmethod
    def _names(self, path: Path) -> list[str]:
        """Return the names of the columns of a file."""

    @abc.abstractmethod
    def _table(self, path: Path, names: Sequence[str]) -> pyarrow.Table:
        """Return columns of a file."""

    def batch(self, indices: Indices) -> Pytree:
        """Return the rows at the indices; strings are lists.

        Args:
            indices: Array or sequence of integers.
        """
        return tree.map_leaves(_plain, super().batch(indices))


class CSVDataset(TableDataset):
    r"""Dataset of the rows of CSV files, read by pyarrow.

    An example is a dict with the value of each column, or (inputs, target) with a target. A row
    with another number of columns, a missing value, or text in a column of numbers is an error.

    Args:
        paths: A file, or several with the same columns; .gz and .bz2 files are decompressed.
        columns: Names of the columns of the inputs. Default: all but the target.
        target: Name of the column of the target. Strings become the numbers of their classes, in
            sorted order; see `classes`. Default: an example has no target.
        stack: Whether the inputs are one array (columns,) instead of a dict. Default: whether there
            is a target.
        dtype: Dtype of floating-point values and of stacked inputs. None: that of the table.
        missing: What to do with missing values and NaN: "raise" an error that names row and column,
            or "nan" in columns of numbers.
        classes: Classes of the target, such as those of the training data. Default: the values of
            the column.
        types: Name of a column -> its type in pyarrow's notation, such as "int32" or "string".
            Default: inferred.
        delimiter: Character between two values.
        header: Names of the columns of files without a header line. Default: the first line.

    Example:
        >>> import pathlib, tempfile
        >>> from ember_ml.data.tables import CSVDataset
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "points.csv")
        >>> _ = path.write_text("x,y,label\n1,2.5,red\n3,4.5,blue\n")
        >>> dataset = CSVDataset(path, target="label")
        >>> inputs, targets = dataset.batch([1, 0])
        >>> inputs.tolist(), targets.tolist(), dataset.classes
        ([[3.0, 4.5], [1.0, 2.5]], [0, 1], ('blue', 'red'))
        >>> folder.cleanup()
    """

    def __init__(
        self,
        paths: Paths,
        columns: Sequence[str] | None = None,
        target: str | None = None,
        *,
        stack: bool | None = None,
        dtype: DTypeLike | None = "float32",
        missing: str = "raise",
        classes: Sequence[str] | None = None,
        types: Mapping[str, str] | None = None,
        delimiter: str = ",",
        header: Sequence[str] | None = None,
    ) -> None:
        self._types = dict(types or {})
        self._delimiter = delimiter
        self._header = None if header is None else list(header)
        super().__init__(
            paths,
            columns,
            target,
            stack=stack,
            dtype=dtype,
            missing=missing,
            classes=classes,
        )

    def _names(self, path: Path) -> list[str]:
        if self._header is not None:
            return self._header
        csv = import_optional("pyarrow.csv", PURPOSE)
        with _named_errors(path):
            try:
                reader = csv.open_csv(path, **self._options())
            except import_optional("pyarrow", PURPOSE).ArrowInvalid as error:
                if "block" not in str(error):
                    raise
                reader = csv.open_csv(path, **self._options(block_size=_LARGEST_BLOCK))
            with reader:
                return [str(name) for name in reader.schema.names]

    def _table(self, path: Path, names: Sequence[str]) -> pyarrow.Table:
        csv = import_optional("pyarrow.csv", PURPOSE)
        arrow = import_optional("pyarrow", PURPOSE)
        convert = csv.ConvertOptions(
            include_columns=list(names),
            column_types={name: arrow.type_for_alias(kind) for name, kind in self._types.items()},
        )
        try:
            table = csv.read_csv(path, **self._options(), convert_options=convert)
        except arrow.ArrowInvalid as error:
            # Again in one thread, where the error names the row, or with a block for a long value.
            block_size = _LARGEST_BLOCK if "block" in str(error) else None
            options = self._options(use_threads=False, block_size=block_size)
            table = csv.read_csv(path, **options, convert_options=convert)
        _check_quotes(path, table)
        for name in names:
            if arrow.types.is_binary(table.column(name).type):
                raise DataFileError(f"{path}: column {name!r} is not valid UTF-8")
        return table

    def _options(
        self, *, use_threads: bool = True, block_size: int | None = None
    ) -> dict[str, object]:
        csv = import_optional("pyarrow.csv", PURPOSE)
        try:
            parse = csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"CSVDataset: delimiter={self._delimiter!r}: {error}") from None
        read = csv.ReadOptions(
            column_names=self._header, use_threads=use_threads, block_size=block_size
        )
        return {"parse_options": parse, "read_options": read}


class ParquetDataset(TableDataset):
    """Dataset of the rows of Parquet files, read by pyarrow.

    An example is a dict with the value of each column, or (inputs, target) with a target. Only the
    selected columns are read.

    Args:
        paths: A file, or several with the same columns.
        columns: Names of the columns of the inputs. Default: all but the target.
        target: Name of the column of the target. Strings become the numbers of their classes, in
            sorted order; see `classes`. Default: an example has no target.
        stack: Whether the inputs are one array (columns,) instead of a dict. Default: whether there
            is a target.
        dtype: Dtype of floating-point values and of stacked inputs. None: that of the table.
        missing: What to do with missing values and NaN: "raise" an error that names row and column,
            or "nan" in columns of numbers.
        classes: Classes of the target, such as those of the training data. Default: the values of
            the column.

    Example:
        >>> import tempfile
        >>> import pyarrow, pyarrow.parquet
        >>> from ember_ml.data.tables import ParquetDataset
        >>> folder = tempfile.TemporaryDirectory()
        >>> table = pyarrow.table({"x": [1.0, 2.0], "name": ["one", "two"]})
        >>> pyarrow.parquet.write_table(table, f"{folder.name}/numbers.parquet")
        >>> ParquetDataset(f"{folder.name}/numbers.parquet").batch([1])["name"]
        ['two']
        >>> folder.cleanup()
    """

    def _names(self, path: Path) -> list[str]:
        parquet = import_optional("pyarrow.parquet", PURPOSE)
        with _named_errors(path):
            return [str(name) for name in parquet.read_schema(path).names]

    def _table(self, path: Path, names: Sequence[str]) -> pyarrow.Table:
        parquet = import_optional("pyarrow.parquet", PURPOSE)
        with parquet.ParquetFile(path) as file:
            return file.read(columns=list(names))


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Convert errors of pyarrow to ones that name the file."""
    arrow = import_optional("pyarrow", PURPOSE)
    try:
        yield
    except EmberError:
        raise
    except (arrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise DataFileError(f"{path} cannot be read: {error!s:.300}") from None


def _check_quotes(path: Path, table: pyarrow.Table) -> None:
    """Raise a DataFileError if the last value has no closing quote: it has the rest of the file."""
    arrow = import_optional("pyarrow", PURPOSE)
    texts = [column for column in table.columns if is_text(column.type) and len(column)]
    values = [(column[-1].as_py() or "").encode().rstrip(b"\r\n") for column in texts]
    values = [value for value in values if b"\n" in value]
    if not values:
        return
    end = b""
    with arrow.input_stream(path) as file:
        while block := file.read(1 << 20):
            end = (end + block)[-_END:]
    if any(end.rstrip(b"\r\n").endswith(value[-_END // 2 :]) for value in values):
        raise DataFileError(
            f"{path}: a value in row {table.num_rows - 1} (from 0) has no closing quote"
        )


def _all_classes(tables: Sequence[pyarrow.Table], target: str) -> Classes:
    return classes_of(
        value for table in tables for value in table.column(target).unique().to_pylist()
    )


def _concatenate(parts: Sequence[Arrays]) -> Arrays:
    """Return the arrays of several tables as one."""
    if len(parts) == 1:
        return parts[0]
    join: Callable[..., np.ndarray] = lambda *arrays: np.concatenate(arrays)  # noqa: E731
    return tree.map_leaves(join, *parts)


def _plain(leaf: np.ndarray) -> Pytree:
    return leaf.tolist() if leaf.dtype == object else leaf
