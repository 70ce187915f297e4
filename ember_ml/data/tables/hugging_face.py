"""Datasets of the package `datasets` as datasets of Ember."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.requirements import import_optional
from ember_ml._core.types import DTypeLike
from ember_ml.data import host_arrays
from ember_ml.data.conversion import Indices, Pytree
from ember_ml.data.dataset import Dataset
from ember_ml.data.errors import check_index
from ember_ml.data.stream import IterableDataset
from ember_ml.data.tables.selection import PURPOSE, Classes, classes_of, is_text, select

if TYPE_CHECKING:
    import datasets


class HFDataset(Dataset):
    """Dataset of Hugging Face with random access; a batch reads only its own rows.

    Args:
        dataset: A `datasets.Dataset`.
        columns: Names of the columns of the inputs. Default: all but the target.
        target: Name of the column of the target. Strings become the numbers of their classes.
            Default: an example has no target.
        stack: Whether the inputs are one array (columns,) instead of a dict. Default: False.
        dtype: Dtype of floating-point values. None: that of the dataset.
        missing: What to do with missing values and NaN: "raise" an error, or "nan" in
            columns of numbers.
    """

    def __init__(
        self,
        dataset: datasets.Dataset,
        columns: Sequence[str] | None = None,
        target: str | None = None,
        *,
        stack: bool = False,
        dtype: DTypeLike | None = "float32",
        missing: str = "raise",
    ) -> None:
        self.selection = select(
            "from_hf", dataset.column_names, columns, target,
            stack=stack, dtype=dtype, missing=missing,
        )  # fmt: skip
        self._dataset = dataset.select_columns(list(self.selection.names)).with_format("arrow")
        self.classes = _classes(dataset, target)
        """Classes of the target, in the order of their numbers; None for numbers without names."""
        self.selection = dataclasses.replace(self.selection, classes=self.classes)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> Pytree:
        index = check_index("HFDataset", index, len(self))
        return tree.map_leaves(lambda column: column[0], self._arrays([index]))

    def batch(self, indices: Indices) -> Pytree:
        """Return the rows at the indices; strings are lists.

        Args:
            indices: Array or sequence of integers.
        """
        rows = host_arrays.indices_of(indices, len(self), "HFDataset")
        arrays = self._arrays(rows.tolist())
        return tree.map_leaves(lambda leaf: leaf.tolist() if leaf.dtype == object else leaf, arrays)

    def _arrays(self, rows: list[int]) -> Pytree:
        return self.selection.convert(self._dataset[rows], "the dataset", rows)


class HFStream(IterableDataset):
    """Streamed dataset of Hugging Face; resuming uses its `skip`.

    Args:
        dataset: A `datasets.IterableDataset`.
        columns: Names of the columns of an example. Default: all but the target.
        target: Name of the column of the target. Default: an example is a dict.
    """

    def __init__(
        self,
        dataset: datasets.IterableDataset,
        columns: Sequence[str] | None = None,
        target: str | None = None,
    ) -> None:
        self.dataset = dataset
        self.columns = None if columns is None else list(columns)
        self.target = target

    def __iter__(self) -> Iterator[Pytree]:
        return self.iterate_from(0)

    def iterate_from(self, start: int) -> Iterator[Pytree]:
        """Return an iterator over the examples from a position on.

        Args:
            start: Number of examples to skip.
        """
        return map(self._example, self.dataset.skip(start) if start else self.dataset)

    def _example(self, row: dict[str, Any]) -> Pytree:
        names = [name for name in row if name != self.target]
        wanted = names if self.columns is None else self.columns
        absent = [name for name in (*wanted, self.target) if name is not None and name not in row]
        if absent:
            raise ArgumentError(
                f"from_hf: there is no column {absent[0]!r}; the columns are {', '.join(row):.200}"
            )
        inputs = {name: row[name] for name in wanted}
        return inputs if self.target is None else (inputs, row[self.target])


def from_hf(
    dataset: datasets.Dataset | datasets.IterableDataset,
    columns: Sequence[str] | None = None,
    target: str | None = None,
    *,
    stack: bool = False,
    dtype: DTypeLike | None = "float32",
    missing: str = "raise",
) -> HFDataset | HFStream:
    """Return a dataset of the package `datasets` as one of Ember.

    An example is a dict with the value of each column, or (inputs, target) with a target.

    Args:
        dataset: A `datasets.Dataset`, or a streamed one, which becomes a stream.
        columns: Names of the columns of the inputs. Default: all but the target.
        target: Name of the column of the target. Strings become the numbers of their classes.
            Default: an example has no target.
        stack: Whether the inputs are one array (columns,) instead of a dict; not for streams.
        dtype: Dtype of floating-point values. None: that of the dataset. Streams keep theirs.
        missing: What to do with missing values and NaN: "raise" an error, or "nan" in
            columns of numbers.
            Streams are not checked.

    Example:
        >>> import datasets
        >>> from ember_ml.data.tables import from_hf
        >>> table = datasets.Dataset.from_dict({"x": [1.0, 2.0], "y": [0, 1]})
        >>> inputs, targets = from_hf(table, ["x"], "y", stack=True).batch([1, 0])
        >>> inputs.tolist(), targets.tolist()
        ([[2.0], [1.0]], [1, 0])
    """
    package = import_optional("datasets", PURPOSE)
    if isinstance(dataset, package.IterableDataset):
        if stack:
            raise ArgumentError("from_hf: stack=True is for datasets with random access")
        return HFStream(dataset, columns, target)
    if isinstance(dataset, package.Dataset):
        return HFDataset(dataset, columns, target, stack=stack, dtype=dtype, missing=missing)
    hint = "; select a split" if isinstance(dataset, dict) else ""
    raise ArgumentTypeError(
        f"from_hf: expected a datasets.Dataset, not {type(dataset).__name__}{hint}"
    )


def _classes(dataset: datasets.Dataset, target: str | None) -> Classes | None:
    """Return the classes of a target: names of labels, or different strings."""
    if target is None:
        return None
    names = getattr(dataset.features[target], "names", None)
    if names is not None:
        return tuple(names)
    if is_text(dataset.data.schema.field(target).type):
        return classes_of(dataset.unique(target))
    return None
