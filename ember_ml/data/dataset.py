"""What a dataset is, and a function applied to one."""

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
    """Examples by index: a length, and an example (an array or a nest of them) for each index.

    A subclass defines `__len__` and `__getitem__`; one that can read many examples at once also
    defines `batch`.

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
        """The examples at the indices as one nest of arrays, stacked along a new first axis.

        Args:
            indices: a host array of integers, or a sequence of them.
        """
        return default_collate(examples(self, indices))

    def map(self, function: Callable[[Nest], Nest], *, batched: bool = False) -> MapDataset:
        """The dataset of `function(example)`; see `MapDataset`."""
        return MapDataset(self, function, batched=batched)

    def __iter__(self) -> Iterator[Nest]:
        return (self[index] for index in range(len(self)))


def examples(dataset: Dataset, indices: Iterable[int]) -> list[Nest]:
    """The examples at the indices; an error in one of them is told its index."""
    found = []
    for index in indices:
        try:
            found.append(dataset[int(index)])
        except Exception as error:
            error.add_note(f"in example {int(index)} of a {type(dataset).__name__}")
            raise
    return found


def check_dataset(where: str, dataset: Any) -> Dataset:
    """The dataset, if it is one that has examples by index."""
    if isinstance(dataset, Dataset):
        return dataset
    raise ArgumentTypeError(
        f"{where}: needs a Dataset (arrays are one by ArrayDataset), not {type(dataset).__name__}"
    )


class MapDataset(Dataset):
    """Another dataset's examples after a function.

    Args:
        dataset: the examples.
        function: from an example (one argument: the whole nest) to an example.
        batched: the function takes whole batches, nests of arrays with a first axis of examples,
            and is called once for each instead of once for each example.

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
        """The examples at the indices as one nest."""
        return (
            self.function(self.dataset.batch(indices)) if self.batched else super().batch(indices)
        )
