"""Batches of the data that pipelines take."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor, first_element
from ember_ml._core.dtype import PYTHON_TYPES
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.nn.features.base import ROWS_PER_BATCH, BatchSource, is_array, without_moving


class Source:
    """Batches that can be read several times, unless they come from a generator.

    Args:
        where: Name of the method, for error messages.
        data: An array, a dataset, or an iterable of batches. Of a tuple, the first part is used.
        transform: Function of a batch. Default: none.
    """

    def __init__(
        self, where: str, data: Any, transform: Callable[[Any], Any] | None = None
    ) -> None:
        self.where = where
        self.data = data
        self.transform = transform

    def map(self, transform: Callable[[Any], Any]) -> Source:
        """Return the source of the transformed batches.

        Args:
            transform: Function of a batch.
        """
        return Source(self.where, self, transform)

    def __iter__(self) -> Iterator[Any]:
        for batch in batches(self.where, self.data, None):
            inputs = batch[0] if isinstance(batch, tuple) and batch else batch
            yield inputs if self.transform is None else self.transform(inputs)

    def check_passes(self, count: int, names: Sequence[str]) -> None:
        """Raise an ArgumentError if the data cannot be read as often as needed.

        Args:
            count: Number of times that the data is read.
            names: Names of the stages that read it.
        """
        if count > 1 and isinstance(self.data, Iterator):
            raise ArgumentError(
                f"{self.where}: a generator can be read once, but {count} fits need the data "
                f"(stages {', '.join(names)}); pass a list of batches, a dataset or a DataLoader"
            )


def batches(where: str, data: Any, batch_size: int | None) -> Iterator[Any]:
    """Yield the batches of data.

    Args:
        where: Name of the method, for error messages.
        data: An array, a list of strings, a dataset, or an iterable of batches; of examples if
            there is a batch size.
        batch_size: Number of examples of a batch. Default: that of the data.
    """
    if batch_size is not None and batch_size < 1:
        raise ArgumentError(f"{where}: batch_size must be at least 1, not {batch_size}")
    if _is_batch(data):
        if batch_size is None:
            yield data
            return
        for start in range(0, len(data), batch_size):
            yield data[start : start + batch_size]
    elif isinstance(data, BatchSource):
        size = batch_size or ROWS_PER_BATCH
        for start in range(0, len(data), size):
            yield data.batch(range(start, min(start + size, len(data))))
    elif isinstance(data, Iterable) and not isinstance(data, (str, bytes, Mapping)):
        read = without_moving(data)
        yield from read if batch_size is None else _grouped(read, batch_size)
    else:
        raise ArgumentTypeError(
            f"{where}: the data must be an array, a dataset or an iterable of batches, not "
            f"{data!r:.60}"
        )


def _is_batch(data: object) -> bool:
    """Return whether data is one batch: an array, nested lists of numbers or a list of strings."""
    return is_array(data) or (isinstance(data, list) and type(first_element(data)) is str)


def _grouped(examples: Iterable[Any], size: int) -> Iterator[Any]:
    iterator = iter(examples)
    while group := list(itertools.islice(iterator, size)):
        yield _collated(group)


def _collated(examples: list[Any]) -> Any:
    """Return examples as a batch: stacked arrays, or a list of what is not numeric."""
    first = examples[0]
    if isinstance(first, tuple):
        return tuple([_collated(list(part)) for part in zip(*examples, strict=True)])
    if isinstance(first, Mapping):
        return {key: _collated([example[key] for example in examples]) for key in first}
    if not is_array(first) and type(first) not in PYTHON_TYPES:
        return examples
    tensors = [convert_to_tensor(example) for example in examples]
    if any(x.shape != tensors[0].shape for x in tensors):
        return examples  # of unequal lengths
    return ops.stack(tensors)
