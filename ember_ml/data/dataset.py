"""Base class of datasets, and datasets with a function applied to each example."""

from __future__ import annotations

import abc
import copy
from collections.abc import Iterable, Iterator
from typing import TypeVar

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data.collate import default_collate
from ember_ml.data.conversion import Indices, Pytree
from ember_ml.data.errors import check_index
from ember_ml.data.random import ExampleMap, RandomTransform, Transform

Wrapper = TypeVar("Wrapper", bound="Dataset")


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

    def for_epoch(self, epoch: int) -> Dataset:
        """Return the dataset as it is in an epoch; the dataset itself if epochs do not differ.

        A loader reads each epoch through this method. A dataset of other datasets overrides it, and
        calls it on each of them.

        Args:
            epoch: Number of the epoch.
        """
        return self

    def map(
        self,
        function: Transform | RandomTransform,
        *,
        batched: bool = False,
        seed: int | None = None,
    ) -> MapDataset:
        """Return the dataset of `function(example)`, or of `function(example, rng)` with a seed.

        Args:
            function: Function from an example, passed as one argument, to an example. With a seed
                it also takes a `numpy.random.Generator`.
            batched: Whether to call the function with whole batches instead of single examples.
            seed: Seed of a random transform. The generator depends only on (seed, epoch, index), so
                order, batch size and number of workers do not change the examples, and resuming is
                exact. Default: the function takes no generator.

        Example:
            >>> from ember_ml.data import ArrayDataset
            >>> noisy = ArrayDataset([0.0, 0.0]).map(lambda x, rng: x + rng.normal(), seed=7)
            >>> bool(noisy[1] == noisy.batch([1, 0])[0])
            True
            >>> bool(noisy[1] == noisy.for_epoch(1)[1])
            False
        """
        return MapDataset(self, function, batched=batched, seed=seed)

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
            error.add_note(f"in example {int(index)} of {type(dataset).__name__}")
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


def replaced(original: Wrapper, /, **parts: object) -> Wrapper:
    """Return a copy of a dataset with other attributes; the dataset itself if they are the same.

    Args:
        original: Dataset to copy.
        **parts: New values of attributes.
    """
    if all(getattr(original, name) is part for name, part in parts.items()):
        return original
    other = copy.copy(original)
    other.__dict__.update(parts)
    return other


class MapDataset(Dataset):
    """Dataset with a function applied to each example.

    Args:
        dataset: The original dataset.
        function: Function from an example, passed as one argument, to an example. With a seed it
            also takes a `numpy.random.Generator`, which depends only on (seed, epoch, index).
        batched: Whether the function is called with whole batches instead of single examples.
        seed: Seed of a random transform. Default: the function takes no generator. Transforms in a
            row need different seeds to be independent.

    Example:
        >>> from ember_ml.data import ArrayDataset
        >>> ArrayDataset([1, 2, 3]).map(lambda x: 10 * x).batch([0, 2]).tolist()
        [10, 30]
    """

    def __init__(
        self,
        dataset: Dataset,
        function: Transform | RandomTransform,
        *,
        batched: bool = False,
        seed: int | None = None,
    ) -> None:
        self.dataset = check_dataset("MapDataset", dataset)
        self._map = ExampleMap("MapDataset", function, seed)
        if batched and seed is not None:
            raise ArgumentError(
                "MapDataset: a random transform (seed) takes single examples; use batched=False"
            )
        self.function = self._map.function
        self.batched = batched

    def for_epoch(self, epoch: int) -> Dataset:
        """Return the dataset with the random generators of an epoch.

        Args:
            epoch: Number of the epoch.
        """
        return replaced(
            self, dataset=self.dataset.for_epoch(epoch), _map=self._map.for_epoch(epoch)
        )

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Pytree:
        if not self.batched and self._map.seed is None:
            return self.function(self.dataset[index])
        index = check_index("MapDataset", index, len(self))
        if not self.batched:
            return self._map(self.dataset[index], index)
        return tree.map_leaves(lambda leaf: leaf[0], self.batch([index]))

    def batch(self, indices: Indices) -> Pytree:
        """Return the examples at the indices as one batch.

        Args:
            indices: Array or sequence of integers.
        """
        if not self.batched:
            return super().batch(indices)
        return self.function(self.dataset.batch(indices))
