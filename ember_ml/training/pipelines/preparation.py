"""Data of a training pipeline: preprocessed inputs and encoded targets."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor
from ember_ml.data import ArrayDataset, DataLoader, Dataset, IterableDataset, default_collate
from ember_ml.data.conversion import Indices, Pytree, is_numeric, to_host_tree
from ember_ml.data.errors import check_index
from ember_ml.nn.features.base import ROWS_PER_BATCH
from ember_ml.nn.module import Module, inference_mode
from ember_ml.nn.pipeline._finite import check_finite
from ember_ml.training.trainer import sources
from ember_ml.training.trainer.sources import DataLike

Source: TypeAlias = Dataset | DataLoader
"""Data that can be read repeatedly, and resumed within an epoch."""
_HINT = (
    "remove them from the data, impute them in the preprocessing, or set the trainer's "
    'on_nonfinite to "skip"'
)


class ColumnDataset(Dataset):
    """Dataset of arrays and lists of strings of equal length; an example is a tuple.

    Args:
        *columns: Arrays, nested lists of numbers, or lists or arrays of strings.
    """

    def __init__(self, *columns: Any) -> None:
        self._columns = [_column(column) for column in columns]
        lengths = [len(column) for column in self._columns]
        if len(set(lengths)) != 1:
            raise ArgumentError(
                f"TrainingPipeline: inputs and targets must have equal lengths, not {lengths}"
            )

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, index: int) -> Pytree:
        index = check_index("ColumnDataset", index, len(self))
        return tuple([column[index] for column in self._columns])

    def batch(self, indices: Indices) -> Pytree:
        """Return the examples at the indices as one batch.

        Args:
            indices: Array or sequence of integers.
        """
        return tuple([_rows(column, indices) for column in self._columns])


def _column(values: Any) -> list[str] | ArrayDataset:
    plain = values.tolist() if hasattr(values, "tolist") and not is_numeric(values) else values
    if str(getattr(values, "dtype", "")).startswith(("<U", ">U", "object", "StringDType")):
        plain = values.tolist()
    if isinstance(plain, (list, tuple)) and all(isinstance(each, str) for each in plain):
        return list(plain)
    return ArrayDataset(values)


def _rows(column: list[str] | ArrayDataset, indices: Indices) -> Pytree:
    if isinstance(column, ArrayDataset):
        return column.batch(indices)
    return [column[int(index)] for index in indices]


def source_of(data: DataLike, batch_size: int) -> Source:
    """Return a dataset or a loader for the data of `TrainingPipeline.fit`.

    Args:
        data: A dataset, a stream, a loader, or arrays as a tuple (inputs, targets).
        batch_size: Batch size of a stream.
    """
    if isinstance(data, (Dataset, DataLoader)):
        return data
    if isinstance(data, IterableDataset):
        return DataLoader(data, batch_size)
    if isinstance(data, tuple) and data:
        return ColumnDataset(*data)
    if isinstance(data, Mapping):
        return ArrayDataset(data)
    if sources.is_list_of_batches(data):
        return sources.loader(data, batch_size, shuffle=False, seed=0)
    raise ArgumentTypeError(
        "TrainingPipeline.fit: data must be a dataset, a DataLoader or a tuple of arrays (inputs, "
        f"targets), not {type(data).__name__}"
    )


class Batches:
    """Part of each batch of a source, read repeatedly without changing the source's state.

    Args:
        source: The source.
        part: 0 for the inputs, 1 for the targets.
    """

    def __init__(self, source: Source, part: int) -> None:
        self.source = source
        self.part = part

    def __iter__(self) -> Iterator[Pytree]:
        if isinstance(self.source, DataLoader):
            batches: Iterator[Pytree] = self.source.once()
        else:
            batches = _chunks(self.source.for_epoch(0))
        for batch in batches:
            yield part_of(batch, self.part)


def _chunks(dataset: Dataset) -> Iterator[Pytree]:
    for start in range(0, len(dataset), ROWS_PER_BATCH):
        yield dataset.batch(range(start, min(start + ROWS_PER_BATCH, len(dataset))))


def part_of(batch: Pytree, part: int) -> Pytree:
    """Return the inputs (0) or the targets (1) of a batch.

    Args:
        batch: A batch: inputs, (inputs, targets, ...) or a dict with these keys.
        part: 0 or 1.
    """
    if isinstance(batch, Mapping):
        key = ("inputs", "targets")[part]
        if key not in batch:
            raise ArgumentError(
                f"TrainingPipeline: a batch has no {key!r}; its keys are {', '.join(batch)}"
            )
        return batch[key]
    if isinstance(batch, (tuple, list)) and not _is_text(batch):
        if len(batch) <= part:
            raise ArgumentError("TrainingPipeline: the batches have no targets")
        return batch[part]
    if part:
        raise ArgumentError("TrainingPipeline: the batches have no targets")
    return batch


def _is_text(batch: Sequence[Any]) -> bool:
    return isinstance(batch, list) and bool(batch) and isinstance(batch[0], str)


class Prepare:
    """Function from a raw batch to a batch for the trainer, as host arrays.

    Args:
        preprocess: Fitted preprocessing of the inputs. None: inputs stay as they are.
        encode: Function of the targets. None: targets stay as they are.
        finite: Whether NaN and infinite values of preprocessed inputs are errors.
    """

    def __init__(
        self,
        preprocess: Module | None,
        encode: Callable[[Any], Any] | None,
        *,
        finite: bool = True,
    ) -> None:
        self.preprocess = preprocess
        self.encode = encode
        self.finite = finite

    def __call__(self, batch: Pytree) -> Pytree:
        """Return the prepared batch.

        Args:
            batch: A batch of the data.
        """
        inputs = self._inputs(part_of(batch, 0))
        if isinstance(batch, Mapping):
            changed = {**batch, "inputs": inputs}
            if self.encode is not None:
                changed["targets"] = self.encode(part_of(batch, 1))
            return to_host_tree(changed)
        if not isinstance(batch, (tuple, list)) or _is_text(batch):
            return to_host_tree(inputs)
        targets = [] if len(batch) < 2 else [self._targets(batch[1])]
        return to_host_tree((inputs, *targets, *batch[2:]))

    def _targets(self, targets: Any) -> Any:
        return targets if self.encode is None else self.encode(targets)

    def _inputs(self, inputs: Any) -> Any:
        if self.preprocess is None:
            return inputs
        with inference_mode(self.preprocess.modules()):
            result = self.preprocess(inputs)
        if self.finite and isinstance(result, EmberTensor):
            check_finite("TrainingPipeline: the preprocessing", result, _HINT)
        return result


class _Collate:
    """Collates examples and prepares the batch."""

    def __init__(self, collate: Callable[[Sequence[Pytree]], Pytree], prepare: Prepare) -> None:
        self.collate = collate
        self.prepare = prepare

    def __call__(self, examples: Sequence[Pytree]) -> Pytree:
        return self.prepare(self.collate(examples))


def prepared(source: Source, prepare: Prepare) -> Source:
    """Return the source of prepared batches.

    Args:
        source: Raw data.
        prepare: Function of a batch.
    """
    if isinstance(source, Dataset):
        return source.map(prepare, batched=True)
    loader = copy.copy(source)
    if source.collate is None and isinstance(source.dataset, Dataset):
        loader.dataset = source.dataset.map(prepare, batched=True)
    else:
        loader.collate = _Collate(source.collate or default_collate, prepare)
    return loader


def first_batch(source: Source, batch_size: int) -> Pytree:
    """Return the first batch of a source as tensors.

    Args:
        source: Prepared data.
        batch_size: Batch size of a dataset.
    """
    loader = source if isinstance(source, DataLoader) else DataLoader(source, batch_size)
    batch = next(loader.once(), None)
    if batch is None:
        raise ArgumentError("TrainingPipeline.fit: the training data is empty")
    return batch
