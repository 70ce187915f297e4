"""KV caches of constant shape, for compiled steps."""

from __future__ import annotations

from typing import NamedTuple, Self

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.sequence_mixing.base import index_range
from ember_ml.nn.states import StateNode


class _Fields(NamedTuple):
    keys: Tensor
    values: Tensor
    end: Tensor
    lengths: Tensor


class FixedCache(_Fields, StateNode):
    """Keys and values in memory of constant shape, which is written in turn.

    The shapes do not change from step to step, so that a compiled step is not compiled again. A
    step overwrites the cache: earlier states are not valid afterwards.

    Args:
        keys: Keys, (batch, heads, capacity, head features).
        values: Values, in the shape of the keys.
        end: Number of positions written so far, (1,); the next one is at `end % capacity`.
        lengths: Number of positions of each example so far, (batch,).
    """

    __slots__ = ()

    @property
    def capacity(self) -> int:
        """Number of slots."""
        return self.keys.shape[2]

    def append(self, key: Tensor, value: Tensor) -> Self:
        """Return the cache with one more position, written over the oldest one.

        Args:
            key: Keys, (batch, heads, 1, head features).
            value: Values, in the shape of the keys.
        """
        native = runtime.LOADED[self.keys.backend]
        slot = (self.end % self.capacity).native
        keys, values = (
            Tensor.from_native(native.overwrite(array.native, update.native, 2, slot))
            for array, update in ((self.keys, key), (self.values, value))
        )
        return type(self)(keys, values, self.end + 1, self.lengths + 1)

    def ages(self) -> Tensor:
        """Return the number of positions since each slot was written, (capacity,)."""
        slot = index_range(0, self.capacity, self.end)
        return (self.end - 1 - slot) % self.capacity

    def is_filled(self, window: int | None) -> Tensor:
        """Return which slots the newest position attends to, (batch, capacity).

        Args:
            window: Number of earlier positions that a position attends to. None: all.
        """
        earlier = self.lengths - 1
        earlier = earlier if window is None else ops.minimum(earlier, window)
        return self.ages() <= earlier[:, None]

    def fix(self, capacity: int) -> Self:
        """Return the cache with a larger capacity; no position may have been overwritten.

        Args:
            capacity: Number of slots, at least those of the cache.
        """
        keys, values = (with_room(x, capacity) for x in (self.keys, self.values))
        return type(self)(keys, values, self.end, self.lengths)


def with_room(x: Tensor, capacity: int) -> Tensor:
    """Return keys or values followed by zeros.

    Args:
        x: Keys or values, (batch, heads, slots, head features).
        capacity: Number of slots of the result.
    """
    return ops.pad_constant(x, [(0, 0), (0, 0), (0, capacity - x.shape[2]), (0, 0)])
