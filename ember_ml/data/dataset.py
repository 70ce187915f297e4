"""Base class of datasets, and datasets with a function applied to each example."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentTypeError
from ember_ml.data.collate import default_collate
from ember_ml.data.conversion import Indices, Pytree
from ember_ml.data.errors import check_index


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
    def __getitem__(self, index: int) -> Pytree: ...

    def batch(self, indices: Indices) -> Pytree:
        """Return the examples at the indices as one batch, stacked along a new first axis.

        Args:
            indices: Array or sequence of integers.
        """
        return default_collate(examples(self, indices))

    def map(self, function: Callable[[Pytree], Pytree], *, batched: bool = False) -> MapDataset:
        """Return the dataset of `function(example)`.

        Args:
            function: Function from an example, passed as one argument, to an example.
            batched: Whether to call the function with whole batches instead of single examples.
        """
        return MapDataset(self, function, batched=batched)

    def __iter__(self) -> Iterator[Pytree]:
        return (self[index] for index in range(len(self)))


def examples(dataset: Dataset, indices: Iterable[int]) -> list[Pytree]:
    """Return the examples at the indices; an error is raised with a note of the index.

    Args:
        dataset: Dataset to read.
        indices: Indices of the examples.
    """
    items = []
    for index in indices:
        try:
            items.append(dataset[int(index)])
        except Exception as error:
            error.add_note(f"in example {int(index)} of a {type(dataset).__name__}")
            raise
    return items


def check_dataset(where: str, dataset: object) -> Dataset:
    """Return the dataset; raise an error if it is not a `Dataset`.

    Args:
        where: Name of the class or function in the error.
        dataset: Value to check.
    """
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
        self, dataset: Dataset, function: Callable[[Pytree], Pytree], *, batched: bool = False
    ) -> None:
        self.dataset = check_dataset("MapDataset", dataset)
        if not callable(function):
            raise ArgumentTypeError(f"MapDataset: function must be callable, not {function!r}")
        self.function = function
        self.batched = batched

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Pytree:
        if not self.batched:
            return self.function(self.dataset[index])
        index = check_index("MapDataset", index, len(self))
        return tree.map_leaves(lambda leaf: leaf[0], self.batch([index]))

    def batch(self, indices: Indices) -> Pytree:
        """Return the examples at the indices as one batch.

        Args:
            indices: Array or sequence of integers.
        """
        if not self.batched:
            return super().batch(indices)
        return self.function(self.dataset.batch(indices))
