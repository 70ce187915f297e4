"""Examples that are computed from their index and a seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data import host_arrays
from ember_ml.data.conversion import Indices, Pytree, to_host_tree
from ember_ml.data.dataset import Dataset
from ember_ml.data.errors import check_index, check_integer
from ember_ml.data.random import random_stream


class GeneratedDataset(Dataset):
    """Dataset of examples generated on demand, each a pure function of (seed, index).

    Order, batch size and number of workers do not change the examples.

    Args:
        function: `function(index, rng)` returns an example; `rng` is `random_stream(seed, index)`.
        length: Number of examples.
        seed: Seed of all examples.
        batch_function: `batch_function(indices, seed)` returns a whole batch; an alternative to
            `function`. Each example must depend only on the seed and its index.

    Example:
        >>> dataset = GeneratedDataset(lambda index, rng: rng.integers(0, 9, 4), 100, seed=1)
        >>> dataset[7].tolist() == dataset.batch([3, 7])[1].tolist()
        True
    """

    def __init__(
        self,
        function: Callable[[int, np.random.Generator], Pytree] | None = None,
        length: int = 0,
        seed: int = 0,
        *,
        batch_function: Callable[[np.ndarray, int], Pytree] | None = None,
    ) -> None:
        if (function is None) == (batch_function is None):
            raise ArgumentError("GeneratedDataset: pass either function or batch_function")
        if not callable(function or batch_function):
            raise ArgumentTypeError(
                f"GeneratedDataset: {function or batch_function!r:.60} is not callable"
            )
        self.function = function
        self.batch_function = batch_function
        self.length = check_integer("GeneratedDataset", "length", length, 0)
        self.seed = check_integer("GeneratedDataset", "seed", seed, 0)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Pytree:
        index = check_index("GeneratedDataset", index, self.length)
        if self.function is not None:
            return self.function(index, random_stream(self.seed, index))
        return tree.map_leaves(lambda leaf: leaf[0], to_host_tree(self.batch([index])))

    def batch(self, indices: Indices) -> Pytree:
        """Return the examples at the indices as one batch.

        Args:
            indices: Array or sequence of integers.
        """
        if self.batch_function is None:
            return super().batch(indices)
        checked = host_arrays.indices_of(indices, self.length, "GeneratedDataset")
        return self.batch_function(checked, self.seed)
