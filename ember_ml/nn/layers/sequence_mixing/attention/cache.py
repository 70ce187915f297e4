"""KV caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from ember_ml import ops
from ember_ml._core import recording, runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.sequence_mixing.attention.fixed_cache import FixedCache, with_room
from ember_ml.nn.layers.sequence_mixing.base import (
    index_range,
    positions_after,
    real_lengths,
)
from ember_ml.nn.states import Nothing, StateNode

INITIAL_CAPACITY = 64
"""Smallest number of positions that a buffer has room for."""


class Buffer:
    """Memory of a KV cache that is extended in place.

    Positions that a cache has are never overwritten: only the newest cache of a buffer extends it,
    once. A buffer whose extension failed has no newest cache, and is not extended again.

    Args:
        cache: Keys and values to copy.
        room: Number of further positions to reserve at least.
    """

    def __init__(self, cache: KVCache, room: int) -> None:
        self.end = cache.slots
        capacity = max(INITIAL_CAPACITY, 2 * (self.end + room))
        self.arrays = [with_room(x, capacity) for x in (cache.keys, cache.values)]
        self.capacity = capacity
        self.newest: list[Tensor] = []
        """Keys of the newest cache, if there is one."""

    def claim(self, keys: Tensor) -> bool:
        """Return whether a cache is the newest one, which it no longer is afterwards.

        Args:
            keys: Keys of the cache.
        """
        try:
            newest = self.newest.pop()  # atomic: one of several threads gets it
        except IndexError:
            return False
        if newest is not keys:
            self.newest.append(newest)
        return newest is keys

    def append(self, slots: int, *updates: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys and values after the last ones.

        Args:
            slots: Number of earlier positions to return.
            updates: Keys and values, (batch, heads, time, head features).

        Returns:
            The earlier and the new keys and values.
        """
        start, self.end = self.end, self.end + updates[0].shape[2]
        for at, update in enumerate(updates):
            native = runtime.LOADED[update.backend]
            array = native.overwrite(self.arrays[at].native, update.native, 2, start)
            self.arrays[at] = Tensor.from_native(array)
        return self.since(start - slots)

    def since(self, start: int) -> tuple[Tensor, Tensor]:
        """Return the keys and values from a position on, for the newest cache."""
        keys, values = (array[:, :, start : self.end] for array in self.arrays)
        self.newest.append(keys)
        return keys, values


class _Fields(NamedTuple):
    keys: Tensor
    values: Tensor
    lengths: Tensor | Nothing
    padding: Tensor | Nothing
    buffer: Buffer | Nothing


class KVCache(_Fields, StateNode):
    """Keys and values of earlier positions: the state of self-attention.

    The newest position of each example is in the last slot. Examples of unequal length have empty
    slots first.

    Args:
        keys: Keys, (batch, heads, slots, head features).
        values: Values, in the shape of the keys.
        lengths: Number of positions so far, (batch,). Absent if it is the number of slots.
        padding: Number of empty slots, (batch,). Absent if there are none.
        buffer: Memory that keys and values are views of. Absent if they are copied to be extended.
    """

    __slots__ = ()

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self.keys.shape[2]

    def positions(self, count: int) -> Tensor | None:
        """Return the indices of the next positions, (batch, 1, count); None: from `slots` on."""
        if not isinstance(self.lengths, Tensor):
            return None
        return positions_after(self.lengths, count)[:, None]

    def is_filled(self, further: int) -> Tensor | None:
        """Return which slots hold a key, (batch, slots + further); None if all do.

        Args:
            further: Number of slots after those of the cache, which are all filled.
        """
        if not isinstance(self.padding, Tensor):
            return None
        slot = index_range(0, self.slots + further, self.keys)
        return slot >= self.padding[:, None]

    def append(self, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Self:
        """Return the cache with further positions.

        Args:
            key: Keys, (batch, heads, time, head features).
            value: Values, in the shape of the keys.
            mask: Padding mask of the new positions, (batch, time), with padding last. Default: no
                padding.
        """
        if mask is not None:
            return self._append_ragged(key, value, mask)
        lengths, buffer, time = self.lengths, self.buffer, key.shape[2]
        if isinstance(lengths, Tensor):
            lengths = lengths + time
        fits = (key.backend, key.dtype) == (self.keys.backend, self.keys.dtype)
        if not isinstance(buffer, Buffer) or recording.OPEN or not fits:
            keys = ops.concat([self.keys, key], axis=2)
            values = ops.concat([self.values, value], axis=2)
            return type(self)(keys, values, lengths, self.padding, ())
        if not buffer.claim(self.keys) or buffer.end + time > buffer.capacity:
            buffer = Buffer(self, time)
        keys, values = buffer.append(self.slots, key, value)
        return type(self)(keys, values, lengths, self.padding, buffer)

    def _append_ragged(self, key: Tensor, value: Tensor, mask: Tensor) -> Self:
        """Return the cache with further positions, without the padding at their end."""
        count = real_lengths(mask)
        missing = mask.shape[1] - count
        slot = index_range(0, self.slots + mask.shape[1], key)
        places = ops.maximum(slot - missing[:, None], 0)[:, None, :, None]
        keys, values = (
            ops.take_along_axis(ops.concat([old, new], axis=2), places, axis=2)
            for old, new in ((self.keys, key), (self.values, value))
        )
        padding = missing + (self.padding if isinstance(self.padding, Tensor) else 0)
        return type(self)(keys, values, self._all_lengths() + count, padding, ())

    def keep(self, limit: int) -> Self:
        """Return the cache of the last positions only.

        Args:
            limit: Number of slots to keep at most.
        """
        dropped = self.slots - limit
        if dropped <= 0:
            return self
        keys, values = self.keys[:, :, dropped:], self.values[:, :, dropped:]
        padding, buffer = self.padding, self.buffer
        if isinstance(padding, Tensor):
            padding = ops.maximum(padding - dropped, 0)
        if isinstance(buffer, Buffer) and buffer.claim(self.keys):
            buffer.newest.append(keys)
        return type(self)(keys, values, self.lengths, padding, buffer)

    def reserve(self) -> Self:
        """Return the cache with a buffer that it is extended in."""
        buffer = Buffer(self, 0)
        return type(self)(*buffer.since(0), self.lengths, self.padding, buffer)

    def fix(self, capacity: int) -> FixedCache:
        """Return the cache in memory of constant shape.

        Args:
            capacity: Number of slots, at least those of the cache.
        """
        if capacity < self.slots:
            raise ArgumentError(
                f"states.fix: capacity={capacity} is less than the {self.slots} positions of the "
                "cache"
            )
        keys, values = (with_room(x, capacity) for x in (self.keys, self.values))
        return FixedCache(keys, values, self._integers([self.slots]), self._all_lengths())

    def trim(self, longest: int) -> Self:
        """Return the cache without slots that are empty in all examples."""
        return self.keep(longest)

    def take_rows(self, indices: Tensor) -> Self:
        """Return the caches of some examples."""
        indices = indices.to_backend(self.keys.backend)
        keys, values = (ops.take(x, indices, axis=0) for x in (self.keys, self.values))
        lengths, padding = (
            ops.take(x, indices, axis=0) if isinstance(x, Tensor) else ()
            for x in (self.lengths, self.padding)
        )
        return type(self)(keys, values, lengths, padding, ())

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return the caches of several batches as one."""
        slots = max(part.slots for part in parts)
        is_ragged = any(p.slots < slots or isinstance(p.padding, Tensor) for p in parts)
        keys = ops.concat([_align(part.keys, slots) for part in parts], axis=0)
        values = ops.concat([_align(part.values, slots) for part in parts], axis=0)
        lengths: Tensor | Nothing = ()
        padding: Tensor | Nothing = ()
        if is_ragged or any(isinstance(part.lengths, Tensor) for part in parts):
            lengths = ops.concat([part._all_lengths() for part in parts], axis=0)
        if is_ragged:
            padding = ops.concat([part._all_padding(slots) for part in parts], axis=0)
        return cls(keys, values, lengths, padding, ())

    def _all_lengths(self) -> Tensor:
        if isinstance(self.lengths, Tensor):
            return self.lengths
        return self._counts(self.slots)

    def _all_padding(self, slots: int) -> Tensor:
        added = slots - self.slots
        return self.padding + added if isinstance(self.padding, Tensor) else self._counts(added)

    def _counts(self, value: int) -> Tensor:
        return self._integers([value] * self.keys.shape[0])

    def _integers(self, values: list[int]) -> Tensor:
        like = self.keys
        return convert_to_tensor(values, "int64", device=like.device, backend=like.backend)


def _align(x: Tensor, slots: int) -> Tensor:
    """Return keys or values with empty slots before them."""
    missing = slots - x.shape[2]
    return x if not missing else ops.pad_constant(x, [(0, 0), (0, 0), (missing, 0), (0, 0)])
