"""One-hot encoding of categories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor, is_framework_array
from ember_ml._core.dtype import float32, int64
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, EmberError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.nn.features.base import FeatureExtractor, FitData
from ember_ml.registry import register

Category = int | str
Columns = list[list[Category]]


class UnknownCategoryError(EmberError, ValueError):
    """Raised for a category that `OneHot` has not seen in `fit`."""


class Categories:
    """The categories of each column, sorted, and their positions."""

    def __init__(self, columns: Iterable[Iterable[Category]]) -> None:
        self.columns = tuple(tuple(sorted(set(values), key=_order)) for values in columns)
        self.codes = [{value: at for at, value in enumerate(values)} for values in self.columns]

    @property
    def are_integers(self) -> bool:
        """Whether no category is a string."""
        return all(isinstance(value, int) for values in self.columns for value in values)


def _order(value: Category) -> tuple[bool, Category]:
    return isinstance(value, str), value


@register("features/one_hot")
class OneHot(FeatureExtractor):
    """One-hot encoding of columns of categories: integers or strings.

    Each column becomes as many features as it has categories: 1 for the category of the row, 0 for
    the others. The categories are sorted, integers before strings, and are part of the config.

    Args:
        categories: The categories of each column. Default: those that `fit` finds.
        unknown: What to do with a category that is not known. "raise": an error that names the
            column and the value. "ignore": all features of the column are 0.

    Shape: (..., columns) -> (..., categories of all columns). A vector is one column.

    Example:
        >>> encoder = nn.features.OneHot().fit([["red", 3], ["blue", 5]])
        >>> encoder.feature_names
        ('x0=blue', 'x0=red', 'x1=3', 'x1=5')
        >>> encoder([["blue", 3]]).tolist()
        [[1.0, 0.0, 1.0, 0.0]]
        >>> encoder.inverse([[0.0, 1.0, 0.0, 1.0]])
        [['red', 5]]
    """

    def __init__(
        self,
        categories: tuple[tuple[int | str, ...], ...] | None = None,
        unknown: Literal["raise", "ignore"] = "raise",
    ) -> None:
        self.unknown = unknown
        self._known: Categories | None = None
        if categories is not None:
            self._known = Categories(categories)
            self.in_features = len(categories)

    @property
    def categories(self) -> tuple[tuple[Category, ...], ...]:
        """The categories of each column."""
        return self._fitted().columns

    def _fitted(self) -> Categories:
        self.check_fitted()
        assert self._known is not None
        return self._known

    @property
    def needs_fit(self) -> bool:
        """Whether the extractor learns from data."""
        return True

    @property
    def is_fitted(self) -> bool:
        """Whether the categories are known."""
        return self._known is not None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Column and category of each feature."""
        columns = enumerate(self.categories)
        return tuple(f"x{at}={value}" for at, values in columns for value in values)

    def reset(self) -> None:
        """Forget the categories."""
        self._known, self.in_features = None, None

    def batches(self, data: FitData) -> Iterator[Any]:
        """Yield the batches of the data; nested lists of strings are one batch."""
        if isinstance(data, list) and isinstance(_first(data), (int, str)):
            yield data
        else:
            yield from super().batches(data)

    def as_batch(self, batch: Any) -> Any:
        """Return a batch unchanged; of a tuple, the first part."""
        return batch[0] if isinstance(batch, tuple) and batch else batch

    def as_argument(self, value: Any) -> Any:
        """Return an argument unchanged: arrays may hold strings."""
        return value

    def update(self, batch: Any) -> None:
        """Add the categories of a batch."""
        columns = self._unique(batch)
        known = self._known.columns if self._known else ((),) * len(columns)
        self._check_columns(len(columns), len(known))
        merged = zip(known, columns, strict=True)
        self._known = Categories([*old, *new] for old, new in merged)
        self.in_features = len(columns)

    def _unique(self, batch: Any) -> Columns:
        x = _read(batch)
        if not isinstance(x, EmberTensor):
            return x
        x = _matrix(x)
        return [ops.unique_values(x[:, at]).tolist() for at in range(x.shape[1])]

    def finish(self) -> None:
        """Write the categories to the config."""
        if not any(self.categories):
            self._known = None
            raise ArgumentError("OneHot: the fit needs at least 1 row(s), got 0")
        self.change_config(categories=self.categories)

    def _check_columns(self, given: int, expected: int) -> None:
        if given != expected:
            raise ShapeError(f"OneHot: expected {expected} column(s), got {given}")

    def extract(self, x: Any) -> Tensor:
        """Return the one-hot encoding.

        Args:
            x: Integers or strings of shape (..., columns), or a vector, which is one column:
                tensor, array or nested lists. Strings have at most two axes.
        """
        self.check_fitted()
        data = _read(x)
        if not isinstance(data, EmberTensor):
            return self._encode_values(data)
        encoded = self._encode_integers(_matrix(data))
        return ops.reshape(encoded, (*data.shape[: max(data.ndim - 1, 1)], encoded.shape[-1]))

    def _encode_values(self, columns: Columns) -> Tensor:
        known = self._fitted()
        self._check_columns(len(columns), len(known.columns))
        parts = []
        for at, values in enumerate(columns):
            codes = [known.codes[at].get(value, -1) for value in values]
            if self.unknown == "raise" and -1 in codes:
                raise self._unknown(at, values[codes.index(-1)])
            ids = convert_to_tensor(codes, int64)
            parts.append(ops.one_hot(ids, len(known.columns[at]), dtype=float32))
        return ops.concatenate(parts, axis=-1)

    def _encode_integers(self, x: Tensor) -> Tensor:
        known = self._fitted()
        self._check_columns(x.shape[1], len(known.columns))
        parts: list[Tensor] = []
        for at, values in enumerate(known.columns):
            numbers = [value for value in values if isinstance(value, int)]
            table = convert_to_tensor(numbers, int64, x.device, backend=x.backend)
            column = ops.astype(x[:, at], int64)
            equal = ops.expand_dims(column, 1) == table
            if self.unknown == "raise":
                self._check_known(at, column, ops.any(equal, axis=1))
            strings = len(values) - len(numbers)  # they come last, and no integer equals one
            parts += [equal, *[ops.zeros_like(column[:, None] == 0)] * strings]
        return ops.astype(ops.concatenate(parts, axis=1), float32)

    def _check_known(self, at: int, column: Tensor, known: Tensor) -> None:
        if not bool(ops.all(known)):
            first = int(ops.argmin(ops.astype(known, int64)))
            raise self._unknown(at, int(column[first]))

    def _unknown(self, at: int, value: Category) -> UnknownCategoryError:
        values = self.categories[at]
        shown = ", ".join(map(repr, values[:10])) + (", ..." if len(values) > 10 else "")
        return UnknownCategoryError(
            f"OneHot: column {at} has the unknown category {value!r}; known are {shown}; pass "
            "unknown='ignore' to encode it as zeros"
        )

    def inverse(self, x: TensorLike) -> Any:
        """Return the categories: a tensor if all are integers, else lists of rows.

        Args:
            x: Encoding of shape (..., categories of all columns). The greatest feature of a column
                decides. If all are 0, the category is None; an error if all columns are integers.
        """
        known = self._fitted()
        x = convert_to_tensor(x)
        self.check_width(x, sum(map(len, known.columns)))
        codes, start = [], 0
        for values in known.columns:
            part = x[..., start : start + len(values)]
            is_known = ops.any(part != 0, axis=-1)
            codes.append(ops.where(is_known, ops.argmax(part, axis=-1), -1))
            start += len(values)
        return self._look_up(ops.stack(codes, axis=-1), known)

    def _look_up(self, codes: Tensor, known: Categories) -> Any:
        flat = ops.reshape(codes, (-1, len(known.columns))).tolist()
        rows: list[list[Any]] = [
            [
                values[code] if code >= 0 else None
                for values, code in zip(known.columns, row, strict=True)
            ]
            for row in flat
        ]
        if not known.are_integers:
            return rows
        if any(value is None for row in rows for value in row):
            raise ArgumentError("OneHot.inverse: a row has no category: all its features are 0")
        return ops.reshape(
            convert_to_tensor(rows, int64, codes.device, backend=codes.backend), codes.shape
        )


def _first(data: Any) -> Any:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def _read(data: Any) -> Tensor | Columns:
    """Return integers as a tensor, other categories as columns of Python values."""
    if isinstance(data, EmberTensor):
        return _checked(data)
    if is_framework_array(data):
        if getattr(data.dtype, "kind", "") not in ("U", "S", "O", "T"):
            return _checked(convert_to_tensor(data))
        data = data.tolist()
    if not isinstance(data, Sequence) or isinstance(data, (str, bytes)):
        raise ArgumentTypeError(
            f"OneHot: expected an array or nested lists of integers or strings, not {data!r:.60}"
        )
    rows = [row if isinstance(row, (list, tuple)) else [row] for row in data]
    if len({len(row) for row in rows}) > 1:
        raise ShapeError("OneHot: the rows must have equal numbers of columns")
    columns = enumerate(zip(*rows, strict=True))
    return [[_category(at, value) for value in column] for at, column in columns]


def _checked(x: Tensor) -> Tensor:
    if not (x.dtype.is_integer or x.dtype.kind == "bool"):
        raise ArgumentTypeError(
            f"OneHot: categories must be integers or strings, got dtype {x.dtype}; convert them "
            "with ops.cast(x, 'int64')"
        )
    if x.ndim == 0:
        raise ShapeError("OneHot: expected shape (..., columns), got a scalar")
    return ops.astype(x, int64) if x.dtype.kind == "bool" else x


def _category(at: int, value: Any) -> Category:
    if isinstance(value, (int, str)):
        return int(value) if isinstance(value, int) else value
    raise ArgumentTypeError(
        f"OneHot: column {at} has the value {value!r}; categories must be integers or strings"
    )


def _matrix(x: Tensor) -> Tensor:
    """Return (..., columns) as a matrix; a vector is one column."""
    return ops.reshape(x, (-1, 1 if x.ndim == 1 else x.shape[-1]))
