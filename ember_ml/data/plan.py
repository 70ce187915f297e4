"""Assignment of examples to batches and shards."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data import host_arrays
from ember_ml.data.errors import check_integer


@dataclasses.dataclass(frozen=True)
class Plan:
    """Assignment of examples to batches; the order of an epoch depends only on (seed, epoch).

    One step takes the next `batch_size` examples of the order for each shard, shard 0 first.
    Together, the shards' batches of a step are the batch of one machine with `count` times the
    batch size. An incomplete last step is distributed evenly. If it has fewer examples than shards,
    several shards read the same example, so that all have the same number of batches.

    Args:
        length: Number of examples; None for a stream.
        batch_size: Number of examples per batch and shard.
        shuffle: Whether each epoch has a new random order.
        seed: Seed of the random orders.
        drop_last: Whether to drop an incomplete last step.
        shard: (index, count) of this shard.
    """

    length: int | None
    batch_size: int
    shuffle: bool
    seed: int
    drop_last: bool
    shard: tuple[int, int]

    @functools.cached_property
    def step(self) -> int:
        """Number of examples per step over all shards."""
        return self.batch_size * self.shard[1]

    @property
    def batches(self) -> int:
        """Number of batches per epoch, the same for every shard."""
        if self.length is None:
            raise ArgumentTypeError("DataLoader: a stream (IterableDataset) has no length")
        return self.length // self.step if self.drop_last else -(-self.length // self.step)

    def order(self, epoch: int) -> np.ndarray | None:
        """Return the shuffled indices of an epoch; None without shuffling.

        Args:
            epoch: Number of the epoch.
        """
        if not self.shuffle or self.length is None:
            return None
        return host_arrays.generator(self.seed, host_arrays.ORDER, epoch).permutation(self.length)

    def indices(self, order: np.ndarray | None, number: int) -> np.ndarray:
        """Return the indices of a batch of this shard.

        Args:
            order: Result of `order`.
            number: Number of the batch in the epoch.
        """
        start = number * self.step
        left = min(self.step, (self.length or 0) - start)
        begin, end = self.share(left)
        begin, end = start + begin, start + end
        return np.arange(begin, end) if order is None else order[begin:end]

    def share(self, count: int) -> tuple[int, int]:
        """Return the start and end of this shard's part of a step.

        Args:
            count: Number of examples of the step.
        """
        index, shards = self.shard
        begin, end = count * index // shards, count * (index + 1) // shards
        return (begin, end) if begin < end else (index % count, index % count + 1)


def check_shard(shard: object) -> tuple[int, int]:
    """Return the validated (index, count); (0, 1) for None.

    Args:
        shard: Value to check.
    """
    if shard is None:
        return 0, 1
    if not isinstance(shard, (tuple, list)) or len(shard) != 2:
        raise ArgumentTypeError(f"DataLoader: shard must be (index, count), not {shard!r}")
    count = check_integer("DataLoader", "the shard's count", shard[1], 1)
    index = check_integer("DataLoader", "the shard's index", shard[0], 0)
    if index >= count:
        raise ArgumentError(
            f"DataLoader: the shard's index must be less than its count {count}, not {index}"
        )
    return index, count
