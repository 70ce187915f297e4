"""Queues in front of the stages: single items, or groups of items that form batches."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Protocol

from ember_ml.nn.pipeline.asynchronous.batch import Batch
from ember_ml.nn.pipeline.asynchronous.items import Item


class Queue(Protocol):
    """Items that wait for a stage."""

    def put(self, item: Item) -> None:
        """Append an item."""

    def take(self) -> list[Item]:
        """Remove and return the items of the next call; none if no call is due."""

    def discard(self, item: Item) -> None:
        """Remove an item."""

    def flush(self) -> None:
        """Make all items due."""

    def items(self) -> list[Item]:
        """Return all items."""

    def __len__(self) -> int: ...


class SingleItems:
    """Queue of a stage without batching, first in, first out."""

    def __init__(self) -> None:
        self._items: OrderedDict[Item, None] = OrderedDict()

    def put(self, item: Item) -> None:
        """Append an item."""
        item.holder = self
        self._items[item] = None

    def take(self) -> list[Item]:
        """Remove and return the first item."""
        return [self._items.popitem(last=False)[0]] if self._items else []

    def discard(self, item: Item) -> None:
        """Remove an item."""
        self._items.pop(item, None)

    def flush(self) -> None:
        """Do nothing: every item is due."""

    def items(self) -> list[Item]:
        """Return all items."""
        return list(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Group:
    """Items of one key that wait to become a batch.

    Args:
        key: Key of the items.
        queue: Queue that the group belongs to.
    """

    def __init__(self, key: Hashable, queue: Batches) -> None:
        self.key = key
        self.queue = queue
        self.items: dict[Item, None] = {}
        self.timer: asyncio.Handle | None = None
        self.due = False

    def discard(self, item: Item) -> None:
        """Remove an item."""
        if self.items.pop(item, self) is None:
            self.queue.count -= 1
            if not self.items:
                self.queue.remove(self)


class Batches:
    """Queue of a stage with batching: one open group for each key.

    A group is due when it has `size` items, when its first item has waited for `max_wait`, or after
    `flush`. A group that is due but not full still takes items until a call is free.

    Args:
        batch: Size, wait and key of the batches.
        on_due: Called when a group becomes due because of its timer.
    """

    def __init__(self, batch: Batch, on_due: Callable[[], None]) -> None:
        self.batch = batch
        self.count = 0
        self._on_due = on_due
        self._loop = asyncio.get_running_loop()
        self._open: dict[Hashable, Group] = {}
        self._due: deque[Group] = deque()

    def put(self, item: Item) -> None:
        """Append an item to the group of its key; raise the error of the key function."""
        key = self.batch.key(item.value) if self.batch.key is not None else None
        group = self._open.get(key)
        if group is None:
            group = self._open[key] = Group(key, self)
            group.timer = self._timer(group)
        item.holder = group
        group.items[item] = None
        self.count += 1
        if len(group.items) >= self.batch.size:
            del self._open[key]
            self._make_due(group)

    def take(self) -> list[Item]:
        """Remove and return the items of the group that became due first."""
        if not self._due:
            return []
        group = self._due[0]
        self.remove(group)
        self.count -= len(group.items)
        return list(group.items)

    def discard(self, item: Item) -> None:
        """Remove an item."""
        if item.holder is not None:
            item.holder.discard(item)

    def remove(self, group: Group) -> None:
        """Remove a group and its timer."""
        if self._open.get(group.key) is group:
            del self._open[group.key]
        if group.due:
            self._due.remove(group)
        if group.timer is not None:
            group.timer.cancel()

    def flush(self) -> None:
        """Make all groups due."""
        for group in list(self._open.values()):
            self._make_due(group)

    def items(self) -> list[Item]:
        """Return all items."""
        groups = dict.fromkeys([*self._due, *self._open.values()])
        return [item for group in groups for item in group.items]

    def __len__(self) -> int:
        return self.count

    def _timer(self, group: Group) -> asyncio.Handle:
        if not self.batch.max_wait:  # after the items that arrive in this pass of the loop
            return self._loop.call_soon(self._expire, group)
        return self._loop.call_later(self.batch.max_wait, self._expire, group)

    def _expire(self, group: Group) -> None:
        self._make_due(group)
        self._on_due()

    def _make_due(self, group: Group) -> None:
        if not group.due:
            group.due = True
            self._due.append(group)
