"""Loaders for the kinds of data that a trainer takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ember_ml._core import tree
from ember_ml._core.convert import first_element, is_framework_array
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import TensorLike
from ember_ml.data import ArrayDataset, DataLoader, Dataset, IterableDataset
from ember_ml.data.arrays import is_nest
from ember_ml.data.conversion import Pytree, is_numeric
from ember_ml.data.reading import Reader, StreamReader

DataLike: TypeAlias = (
    DataLoader
    | Dataset
    | IterableDataset
    | Sequence[Any]
    | Mapping[str, Any]
    | Iterable[Any]
    | TensorLike
)
"""A loader, a dataset, nested arrays, or batches: a list, a re-iterable or a generator."""


class BatchList(Dataset):
    """Dataset whose examples are the batches of a list."""

    def __init__(self, batches: Sequence[Pytree]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> Pytree:
        return self._batches[index]


class BatchLoader(DataLoader):
    """Loader for an iterable of batches, such as a loader of another library.

    A resumed run skips the batches that it has used, which is exact if every loop yields the same
    batches. A generator is read once, and continues with its next batch.

    Args:
        batches: The iterable.
    """

    def __init__(self, batches: Iterable[Pytree]) -> None:
        self.is_generator = isinstance(batches, Iterator)
        factory = _Once(batches) if self.is_generator else batches.__iter__
        self._stream = IterableDataset(factory)
        super().__init__(self._stream, 1, collate=_only)
        self._source = batches

    @property
    def num_batches(self) -> int | None:
        """Number of batches of an epoch; None if it is unknown."""
        try:
            return len(self._source)  # type: ignore[arg-type]
        except TypeError:
            return None

    def _reader(self) -> Reader:
        return StreamReader(self._stream, self.collate, self.plan, skip=not self.is_generator)


class _Once:
    """The iterator of a generator, which can be read once."""

    def __init__(self, batches: Iterable[Pytree]) -> None:
        self._batches: Iterable[Pytree] | None = batches

    def __call__(self) -> Iterable[Pytree]:
        batches, self._batches = self._batches, None
        if batches is None:
            raise ArgumentError(
                "the generator has no more batches. It can be read once; for several epochs pass a "
                "list of batches, a DataLoader, or IterableDataset(function) for a stream of "
                "examples"
            )
        return batches


def _only(items: Sequence[Pytree]) -> Pytree:
    return items[0]


def loader(data: DataLike, batch_size: int, *, shuffle: bool, seed: int) -> DataLoader:
    """Return a loader for data; a loader is returned unchanged.

    Args:
        data: The data.
        batch_size: Batch size of data that is not in batches.
        shuffle: Whether to shuffle datasets and arrays.
        seed: Seed of the random orders.
    """
    if isinstance(data, DataLoader):
        return data
    if isinstance(data, IterableDataset):
        return DataLoader(data, batch_size)
    if isinstance(data, Dataset):
        return DataLoader(data, batch_size, shuffle=shuffle, seed=seed)
    if is_list_of_batches(data):
        return DataLoader(BatchList(data), 1, collate=_only)  # type: ignore[arg-type]
    if isinstance(data, (tuple, list)):
        return DataLoader(ArrayDataset(*data), batch_size, shuffle=shuffle, seed=seed)
    if isinstance(data, Mapping) or is_framework_array(data):
        return DataLoader(ArrayDataset(data), batch_size, shuffle=shuffle, seed=seed)
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        return BatchLoader(data)
    raise ArgumentTypeError(
        "data must be a DataLoader, a dataset, a tuple of arrays (inputs, targets), a dict of "
        "arrays, or batches: a list, a loader of another library or a generator; not "
        f"{type(data).__name__}"
    )


def check_generators(
    data: DataLike, validation: DataLike | None, epochs: float, steps: float, every: int | None
) -> None:
    """Raise an error if data that can be read once would be read again.

    Args:
        data: Training data.
        validation: Validation data.
        epochs: Maximum number of epochs of the training.
        steps: Maximum number of steps; infinite if only the epochs are limited.
        every: Number of steps between evaluations; None if there is one in each epoch.
    """
    again = "it can be read once; pass a list of batches or a DataLoader"
    if isinstance(data, Iterator) and 1 < epochs < math.inf == steps:
        raise ArgumentError(
            f"fit: a generator cannot provide the batches of {epochs} epochs: {again}"
        )
    if isinstance(validation, Iterator) and (epochs > 1 or every is not None):
        raise ArgumentError(f"fit: a generator is not enough for several evaluations: {again}")


def is_list_of_batches(data: object) -> bool:
    """Return whether data is a list of tuples, dicts or lists of arrays.

    A list of arrays or numbers is (inputs, targets).
    """
    if not isinstance(data, list) or not data:
        return False
    first = data[0]
    if not isinstance(first, list):
        return isinstance(first, (tuple, Mapping))
    return bool(first) and (is_nest(first[0]) or is_framework_array(first[0]))


def is_array(data: object) -> bool:
    """Return whether data is one array: of any framework, a tensor or nested lists of numbers."""
    return is_numeric(first_element(data))


def with_targets(
    data: DataLike, targets: DataLike, validation: DataLike | None, has_loss: bool
) -> tuple[DataLike, DataLike | None]:
    """Return data and validation data for the positional arguments of `fit`.

    Args:
        data: Inputs, or data with targets.
        targets: Targets of the inputs, or validation data.
        validation: Validation data, if `targets` are targets.
        has_loss: Whether batches have targets.
    """
    if validation is None and not (has_loss and (is_array(targets) or is_array(data))):
        return data, targets
    return (data, targets), validation


def source_of(data: DataLike) -> list[object]:
    """Return the objects that identify data: its dataset or its arrays."""
    if isinstance(data, DataLoader):
        return [data.dataset]
    return tree.leaves_of(data) if isinstance(data, (tuple, list, dict)) else [data]
