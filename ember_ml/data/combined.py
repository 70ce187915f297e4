"""Subsets, splits and concatenations of datasets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data import _checks, host_arrays
from ember_ml.data.conversion import Nest, host_nest
from ember_ml.data.dataset import Dataset, check_dataset


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

    def __init__(self, dataset: Dataset, indices: Any) -> None:
        self.dataset = check_dataset("Subset", dataset)
        self.indices = host_arrays.indices_of(indices, len(dataset), "Subset")

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Nest:
        return self.dataset[int(self.indices[_checks.index("Subset", index, len(self))])]

    def batch(self, indices: Any) -> Nest:
        """Return the examples at the indices as one batch."""
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

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> Nest:
        place = _checks.index("ConcatDataset", index, len(self))
        for dataset, end in zip(self.datasets, self._ends, strict=True):
            if place < end:
                return dataset[place - end + len(dataset)]
        raise AssertionError("the index is in range")

    def batch(self, indices: Any) -> Nest:
        """Return the examples at the indices as one batch, read with one call per dataset."""
        places = host_arrays.indices_of(indices, len(self), "ConcatDataset")
        found, order = host_arrays.groups(places, self._ends)
        parts = [tree.flatten(host_nest(self.datasets[owner].batch(own))) for owner, own in found]
        structure = parts[0][1]
        columns = list(zip(*(leaves for leaves, _ in parts), strict=False))
        if any(other != structure for _, other in parts) or not _joins(columns):
            return super().batch(indices)  # not numeric, or an error that names the difference
        return tree.unflatten(structure, [host_arrays.join(column, order) for column in columns])


def _joins(columns: list[tuple[Any, ...]]) -> bool:
    """Return whether every column holds arrays with rows of equal shape."""
    return all(
        all(host_arrays.is_array(part) and part.shape[1:] == column[0].shape[1:] for part in column)
        for column in columns
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
    seed = _checks.integer("random_split", "seed", seed, 0)
    order = host_arrays.permutation(len(dataset), seed, host_arrays.SPLIT)
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def _sizes(lengths: Sequence[Any], total: int) -> list[int]:
    if not lengths or any(not isinstance(part, Real) or part < 0 for part in lengths):
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
    by_loss = sorted(range(len(sizes)), key=lambda k: sizes[k] - lengths[k] * total)
    for place in by_loss[: total - sum(sizes)]:
        sizes[place] += 1
    return sizes
