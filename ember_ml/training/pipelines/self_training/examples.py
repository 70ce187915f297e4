"""Datasets of self-training: labeled, unlabeled and pseudo-labeled examples as dicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data import ArrayDataset, DataLoader, Dataset, IterableDataset
from ember_ml.data.conversion import Indices, Pytree, is_numeric, to_host
from ember_ml.data.dataset import replaced
from ember_ml.training.pipelines.preparation import ColumnDataset
from ember_ml.training.trainer.sources import DataLike

KEYS = ("inputs", "targets", "sample_weight")
"""Keys of the parts of an example that is a tuple."""
LABEL_KEYS = KEYS[1:]
WHERE = "SelfTrainingPipeline.fit"
CHUNK = 1024
"""Number of examples that are read at once."""


def dataset_of(name: str, data: DataLike) -> Dataset:
    """Return the dataset of an argument of `fit`.

    Args:
        name: Name of the argument in errors.
        data: A dataset, an array of inputs, a tuple (inputs, targets), or a dict of arrays.
    """
    if isinstance(data, (DataLoader, IterableDataset)):
        raise ArgumentTypeError(
            f"{WHERE}: {name} must be a dataset or arrays, whose examples have indices, not a "
            f"{type(data).__name__}; pass its dataset, or read it into arrays"
        )
    dataset = data if isinstance(data, Dataset) else _arrays(name, data)
    if not len(dataset):
        raise ArgumentError(f"{WHERE}: the {name} data is empty")
    return dataset


def _arrays(name: str, data: DataLike) -> Dataset:
    try:
        if isinstance(data, Mapping):
            return ArrayDataset(data)
        return ColumnDataset(*data) if isinstance(data, tuple) else ColumnDataset(data)
    except (ArgumentError, ArgumentTypeError) as error:
        raise type(error)(f"{WHERE}: {name}: {error}") from None


def as_mapping(example: Pytree) -> dict[str, Any]:
    """Return an example or a batch as a dict with "inputs" and, if it has them, "targets".

    Args:
        example: Inputs, a tuple (inputs, targets, weights), or a dict.
    """
    if isinstance(example, Mapping):
        return dict(example)
    is_text = isinstance(example, list) and bool(example) and isinstance(example[0], str)
    if isinstance(example, (tuple, list)) and not is_text:
        return dict(zip(KEYS, example, strict=False))
    return {"inputs": example}


class Inputs(Dataset):
    """Dataset of dicts with the inputs and masks of another dataset, without its labels.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def for_epoch(self, epoch: int) -> Dataset:
        """Return the dataset as it is in an epoch.

        Args:
            epoch: Number of the epoch.
        """
        return replaced(self, dataset=self.dataset.for_epoch(epoch))

    def __getitem__(self, index: int) -> dict[str, Any]:
        return _without_labels(as_mapping(self.dataset[index]))

    def batch(self, indices: Indices) -> dict[str, Any]:
        """Return the inputs at the indices as one batch.

        Args:
            indices: Array or sequence of integers.
        """
        return _without_labels(as_mapping(self.dataset.batch(indices)))


def _without_labels(example: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in example.items() if key not in LABEL_KEYS}


class Labeled(Inputs):
    """Dataset of dicts with inputs, and with targets and weights from arrays.

    Args:
        dataset: Dataset of the inputs.
        targets: Class index or probabilities of each example.
        weights: Weight of each example in the loss.
    """

    def __init__(self, dataset: Dataset, targets: Any, weights: Any) -> None:
        super().__init__(dataset)
        self.targets = to_host(targets)
        self.weights = to_host(weights)

    def __getitem__(self, index: int) -> dict[str, Any]:
        labels = {"targets": self.targets[index], "sample_weight": self.weights[index]}
        return super().__getitem__(index) | labels

    def batch(self, indices: Indices) -> dict[str, Any]:
        """Return the examples at the indices as one batch.

        Args:
            indices: Array or sequence of integers.
        """
        labels = {"targets": self.targets[indices], "sample_weight": self.weights[indices]}
        return super().batch(indices) | labels


class Cycle(Dataset):
    """Dataset that is repeated until it has a length.

    Args:
        dataset: The dataset.
        length: Number of examples.
    """

    def __init__(self, dataset: Dataset, length: int) -> None:
        self.dataset = dataset
        self.length = length

    def __len__(self) -> int:
        return self.length

    def for_epoch(self, epoch: int) -> Dataset:
        """Return the dataset as it is in an epoch.

        Args:
            epoch: Number of the epoch.
        """
        return replaced(self, dataset=self.dataset.for_epoch(epoch))

    def __getitem__(self, index: int) -> Pytree:
        return self.dataset[index % len(self.dataset)]

    def batch(self, indices: Indices) -> Pytree:
        """Return the examples at the indices as one batch.

        Args:
            indices: Array or sequence of integers.
        """
        return self.dataset.batch([int(index) % len(self.dataset) for index in indices])


def column(name: str, dataset: Dataset, key: str) -> list[Any] | None:
    """Return a part of all examples as a list; None if the examples do not have it.

    Args:
        name: Name of the data in errors.
        dataset: The dataset.
        key: "targets" or "sample_weight".
    """
    values: list[Any] = []
    for start in range(0, len(dataset), CHUNK):
        batch = as_mapping(dataset.batch(range(start, min(start + CHUNK, len(dataset)))))
        if key not in batch:
            return None
        part = batch[key]
        values += to_host(part).tolist() if is_numeric(part) else list(part)
    return values
