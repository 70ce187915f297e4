"""Subsets, splits and concatenations of datasets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data import host_arrays
from ember_ml.data.conversion import Indices, Pytree, to_host_tree
from ember_ml.data.dataset import Dataset, check_dataset, replaced
from ember_ml.data.errors import check_index, check_integer


class Subset(Dataset):
    """Examples of a dataset at the given indices.

    Args:
        dataset: The dataset.
        indices: Indices of the examples, in the order of the subset.

    Example:
        >>> from ember_ml.data import ArrayDataset
        >>> Subset(ArrayDataset([10, 20, 30]), [2, 0]).batch([0, 1]).tolist()
        [30, 10]
    """

    def __init__(self, dataset: Dataset, indices: Indices) -> None:
        self.dataset = check_dataset("Subset", dataset)
        self.indices = host_arrays.indices_of(indices, len(dataset), "Subset")

    def for_epoch(self, epoch: int) -> Dataset:
        """Return the subset of the dataset of an epoch.

        Args:
            epoch: Number of the epoch.
        """
        return replaced(self, dataset=self.dataset.for_epoch(epoch))

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Pytree:
        return self.dataset[int(self.indices[check_index("Subset", index, len(self))])]

    def batch(self, indices: Indices) -> Pytree:
        """Return the examples at the indices as one batch.

        Args:
            indices: Array or sequence of integers.
        """
        return self.dataset.batch(self.indices[indices])


class ConcatDataset(Dataset):
    """Concatenation of datasets.

    Args:
        datasets: The datasets, at least one.

    Example:
        >>> from ember_ml.data import ArrayDataset
        >>> both = ConcatDataset([ArrayDataset([1, 2]), ArrayDataset([3])])
        >>> both.batch([2, 0]).tolist()
        [3, 1]
    """

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self.datasets = [check_dataset("ConcatDataset", dataset) for dataset in datasets]
        if not self.datasets:
            raise ArgumentError("ConcatDataset: pass at least one dataset")
        self._ends = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def for_epoch(self, epoch: int) -> Dataset:
        """Return the concatenation of the datasets of an epoch.

        Args:
            epoch: Number of the epoch.
        """
        datasets = [dataset.for_epoch(epoch) for dataset in self.datasets]
        if all(new is old for new, old in zip(datasets, self.datasets, strict=True)):
            return self
        return replaced(self, datasets=datasets)

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> Pytree:
        index = check_index("ConcatDataset", index, len(self))
        for dataset, end in zip(self.datasets, self._ends, strict=True):
            if index < end:
                return dataset[index - end + len(dataset)]
        raise AssertionError("the index is in range")

    def batch(self, indices: Indices) -> Pytree:
        """Return the examples at the indices as one batch, read with one call per dataset.

        Args:
            indices: Array or sequence of integers.
        """
        checked = host_arrays.indices_of(indices, len(self), "ConcatDataset")
        groups, order = _group(checked, self._ends)
        batches = [self.datasets[owner].batch(own) for owner, own in groups]
        parts = [tree.flatten(to_host_tree(batch)) for batch in batches]
        structure = parts[0][1]
        columns = list(zip(*(leaves for leaves, _ in parts), strict=False))
        if any(other != structure for _, other in parts) or not _can_concatenate(columns):
            return super().batch(indices)  # not numeric, or an error that names the difference
        return tree.unflatten(structure, [_concatenate(column, order) for column in columns])


def _group(
    indices: np.ndarray, ends: Sequence[int]
) -> tuple[list[tuple[int, np.ndarray]], np.ndarray]:
    """Group indices of concatenated datasets by dataset.

    Args:
        indices: Indices into the concatenation.
        ends: End of each dataset in the concatenation.

    Returns:
        (dataset, indices into it) for each dataset, and the position of each index in the groups.
    """
    owners = np.searchsorted(ends, indices, side="right")
    starts = np.concatenate([[0], ends])
    groups = [(int(owner), indices[owners == owner] - starts[owner]) for owner in np.unique(owners)]
    return groups, np.argsort(np.argsort(owners, kind="stable"), kind="stable")


def _concatenate(parts: Sequence[np.ndarray], order: np.ndarray) -> np.ndarray:
    rows = np.concatenate(parts, dtype=host_arrays.common_dtype(parts))
    return host_arrays.take(rows, order)


def _can_concatenate(columns: list[tuple[Pytree, ...]]) -> bool:
    """Return whether every column holds arrays with rows of equal shape."""
    return all(
        isinstance(part, np.ndarray) and part.shape[1:] == column[0].shape[1:]
        for column in columns
        for part in column
    )


def random_split(
    dataset: Dataset, lengths: Sequence[int] | Sequence[float], seed: int = 0
) -> list[Subset]:
    """Split a dataset at random into disjoint subsets.

    Args:
        dataset: The dataset to split.
        lengths: Number of examples of each subset, or fractions that sum to 1.
        seed: Seed of the split, which depends only on it and the length of the dataset.

    Example:
        >>> from ember_ml.data import ArrayDataset
        >>> train, test = random_split(ArrayDataset(list(range(10))), [0.8, 0.2])
        >>> len(train), len(test)
        (8, 2)
    """
    check_dataset("random_split", dataset)
    sizes = _sizes(lengths, len(dataset))
    seed = check_integer("random_split", "seed", seed, 0)
    order = host_arrays.generator(seed, host_arrays.SPLIT).permutation(len(dataset))
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def _is_length(value: object) -> bool:
    return isinstance(value, Real) and not value < 0


def _sizes(lengths: Sequence[float], total: int) -> list[int]:
    if not lengths or not all(_is_length(part) for part in lengths):
        raise ArgumentTypeError(
            f"random_split: lengths must be nonnegative integers or fractions, not {lengths!r}"
        )
    if all(isinstance(part, Integral) for part in lengths):
        if sum(lengths) != total:
            raise ShapeError(
                f"random_split: the lengths {list(lengths)} sum to {sum(lengths)}, but the dataset "
                f"has {total} examples"
            )
        return [int(part) for part in lengths]
    if abs(sum(lengths) - 1) > 1e-6:
        raise ArgumentError(
            f"random_split: the fractions {list(lengths)} sum to {sum(lengths)}, not to 1"
        )
    # The examples left over by rounding down go to the parts with the largest remainders.
    sizes = [int(part * total + 1e-9) for part in lengths]
    by_remainder = sorted(range(len(sizes)), key=lambda k: sizes[k] - lengths[k] * total)
    for part in by_remainder[: total - sum(sizes)]:
        sizes[part] += 1
    return sizes
