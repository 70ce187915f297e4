"""Which examples make which batch of which epoch."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data import _checks, host_arrays


@dataclasses.dataclass(frozen=True)
class Plan:
    """The cut of a dataset into batches; the order of an epoch is a function of (seed, epoch).

    One step takes `batch_size` examples for each shard from the order, shard 0 first. So the shards
    of a step together are the batch that one machine would have with a `count` times larger size.
    The last step, if it is a short one, is shared out evenly; if it has fewer examples than there
    are shards, some are read by more than one, so that every shard has the same number of batches.
    """

    length: int | None
    batch_size: int
    shuffle: bool
    seed: int
    drop_last: bool
    shard: tuple[int, int]

    @functools.cached_property
    def step(self) -> int:
        """Examples that all shards together take at once."""
        return self.batch_size * self.shard[1]

    @property
    def batches(self) -> int:
        """Batches of an epoch, the same for every shard."""
        if self.length is None:
            raise ArgumentTypeError("DataLoader: a stream (IterableDataset) has no length")
        return self.length // self.step if self.drop_last else -(-self.length // self.step)

    def order(self, epoch: int) -> Any:
        """The shuffled indices of an epoch; None in a dataset's own order."""
        if not self.shuffle or self.length is None:
            return None
        return host_arrays.permutation(self.length, self.seed, host_arrays.ORDER, epoch)

    def indices(self, order: Any, number: int) -> Any:
        """The indices of a batch of this shard."""
        start = number * self.step
        left = min(self.step, (self.length or 0) - start)
        begin, end = self.share(left)
        begin, end = start + begin, start + end
        return host_arrays.span(begin, end) if order is None else order[begin:end]

    def share(self, count: int) -> tuple[int, int]:
        """Where this shard's part of a step of `count` examples begins and ends."""
        place, shards = self.shard
        begin, end = count * place // shards, count * (place + 1) // shards
        return (begin, end) if begin < end else (place % count, place % count + 1)


def check_shard(shard: Any) -> tuple[int, int]:
    """(index, count), checked; (0, 1) for None."""
    if shard is None:
        return 0, 1
    if not isinstance(shard, (tuple, list)) or len(shard) != 2:
        raise ArgumentTypeError(f"DataLoader: shard must be (index, count), not {shard!r}")
    count = _checks.integer("DataLoader", "the shard's count", shard[1], 1)
    index = _checks.integer("DataLoader", "the shard's index", shard[0], 0)
    if index >= count:
        raise ArgumentError(
            f"DataLoader: the shard's index must be below the count {count}, not {index}"
        )
    return index, count
