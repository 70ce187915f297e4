"""Base class of datasets, and datasets with a function applied to each example."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentTypeError
from ember_ml.data import _checks
from ember_ml.data.collate import default_collate
from ember_ml.data.conversion import Nest


class Dataset(abc.ABC):
    """Dataset with a length and an example, an array or a pytree of arrays, for each index.

    A subclass defines `__len__` and `__getitem__`. If it can read many examples with one call, it
    also overrides `batch`.

    Example:
        >>> class Squares(Dataset):
        ...     def __len__(self):
        ...         return 10
        ...
        ...     def __getitem__(self, index):
        ...         return index, index**2
        >>> numbers, squares = Squares().batch([1, 2, 3])
        >>> squares.tolist()
        [1, 4, 9]
    """

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def __getitem__(self, index: int) -> Nest: ...

    def batch(self, indices: Any) -> Nest:
        """Return the examples at the indices as one batch, stacked along a new first axis.

        Args:
            indices: Host array or sequence of integers.
        """
        return default_collate(examples(self, indices))

    def map(self, function: Callable[[Nest], Nest], *, batched: bool = False) -> MapDataset:
        """Return the dataset of `function(example)`; see `MapDataset`."""
        return MapDataset(self, function, batched=batched)

    def __iter__(self) -> Iterator[Nest]:
        return (self[index] for index in range(len(self)))


def examples(dataset: Dataset, indices: Iterable[int]) -> list[Nest]:
    """Return the examples at the indices; an error is raised with a note of the index."""
    items = []
    for index in indices:
        try:
            items.append(dataset[int(index)])
        except Exception as error:
            error.add_note(f"in example {int(index)} of a {type(dataset).__name__}")
            raise
    return items


def check_dataset(where: str, dataset: Any) -> Dataset:
    """Return the dataset; raise an error if it is not a `Dataset`."""
    if isinstance(dataset, Dataset):
        return dataset
    raise ArgumentTypeError(
        f"{where}: expected a Dataset, not {type(dataset).__name__}; wrap arrays in an ArrayDataset"
    )


class MapDataset(Dataset):
    """Dataset with a function applied to each example.

    Args:
        dataset: The original dataset.
        function: Function from an example, passed as one argument, to an example.
        batched: Whether the function is called with whole batches instead of single examples.

    Example:
        >>> from ember_ml.data import ArrayDataset
        >>> ArrayDataset([1, 2, 3]).map(lambda x: 10 * x).batch([0, 2]).tolist()
        [10, 30]
    """

    def __init__(
        self, dataset: Dataset, function: Callable[[Nest], Nest], *, batched: bool = False
    ) -> None:
        self.dataset = check_dataset("MapDataset", dataset)
        if not callable(function):
            raise ArgumentTypeError(f"MapDataset: function must be callable, not {function!r}")
        self.function = function
        self.batched = batched

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Nest:
        if not self.batched:
            return self.function(self.dataset[index])
        place = _checks.index("MapDataset", index, len(self))
        return tree.map_leaves(lambda leaf: leaf[0], self.batch([place]))

    def batch(self, indices: Any) -> Nest:
        """Return the examples at the indices as one batch."""
        return (
            self.function(self.dataset.batch(indices)) if self.batched else super().batch(indices)
        )
