"""Transfer of batches between processes through shared memory."""

from __future__ import annotations

import dataclasses
import mmap
import os
import socket
import tempfile
from multiprocessing.connection import Connection
from typing import NamedTuple, TypeAlias, TypeGuard

import numpy as np

from ember_ml._core import tree
from ember_ml.data.conversion import Pytree

AVAILABLE = hasattr(socket, "send_fds")
"""Whether file descriptors can be sent to another process."""

THRESHOLD = 1 << 16
"""Size in bytes from which the arrays of a batch are sent through shared memory."""

ALIGNMENT = 64
GROWTH = 1.25
Memory: TypeAlias = np.ndarray
"""Bytes of a segment."""


@dataclasses.dataclass
class Slot:
    """Placeholder for an array in a segment.

    Args:
        dtype: Dtype with byte order, as in `np.dtype.str`.
        shape: Shape of the array.
        offset: Position in the segment.
    """

    dtype: str
    shape: tuple[int, ...]
    offset: int


class Message(NamedTuple):
    """Pytree with slots for the arrays in a segment.

    Args:
        content: The pytree.
        segment: Number of the segment; None if the pytree contains its arrays.
        size: Size of a new segment, whose file descriptor follows; 0 for a known one.
        dropped: Segments that are not used again.
    """

    content: Pytree
    segment: int | None = None
    size: int = 0
    dropped: tuple[int, ...] = ()


class Sender:
    """Writes batches to segments that are used again after the receiver has released them.

    The segments are anonymous, so none is left behind by a process that is killed.

    Args:
        connection: Connection to the receiver.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.segments: dict[int, tuple[int, Memory]] = {}  # file descriptor and memory
        self.free: list[int] = []
        self._created = 0

    def release(self, numbers: list[int]) -> None:
        """Use segments again, on request of the receiver.

        Args:
            numbers: Numbers of the segments.
        """
        self.free.extend(numbers)

    def send(self, content: Pytree) -> None:
        """Send a pytree of host arrays and other leaves.

        Args:
            content: The pytree; its other leaves must be picklable.
        """
        arrays = [leaf for leaf in tree.leaves_of(content) if _is_sendable(leaf)]
        size = sum(_aligned(array.nbytes) for array in arrays)
        if not AVAILABLE or size < THRESHOLD:
            self.connection.send(Message(content))
            return
        number, new_size, dropped = self._acquire(size)
        descriptor, memory = self.segments[number]
        try:
            self.connection.send(Message(_written(content, memory), number, new_size, dropped))
        except BaseException:
            if not new_size:
                self.free.append(number)
            raise
        if new_size:
            _send_descriptor(self.connection, descriptor)

    def _acquire(self, size: int) -> tuple[int, int, tuple[int, ...]]:
        """Return a free segment, its size if it is new, and the segments it replaces."""
        fitting = [number for number in self.free if len(self.segments[number][1]) >= size]
        if fitting:
            number = min(fitting)
            self.free.remove(number)
            return number, 0, ()
        dropped = tuple(self.free)
        for number in dropped:
            self.free.remove(number)
            os.close(self.segments.pop(number)[0])
        capacity = int(size * GROWTH) if self.segments or dropped else size
        number, self._created = self._created, self._created + 1
        self.segments[number] = create(capacity)
        return number, capacity, dropped


class Receiver:
    """Reads batches from segments, without a copy as long as few of them are in use.

    Args:
        connection: Connection to the sender.
        limit: Number of segments in use from which arrays are copied. Each segment takes a file
            descriptor, so a loop that keeps every batch must not keep every segment.
    """

    def __init__(self, connection: Connection, limit: int) -> None:
        self.connection = connection
        self.limit = limit
        self.segments: dict[int, Memory] = {}
        self.released: list[int] = []
        self.in_use: set[int] = set()

    def receive(self) -> Pytree:
        """Return the next pytree."""
        message: Message = self.connection.recv()
        for number in message.dropped:
            del self.segments[number]
        if message.segment is None:
            return message.content
        if message.size:
            descriptor = _receive_descriptor(self.connection)
            self.segments[message.segment] = attach(descriptor, message.size)
            os.close(descriptor)
        self.in_use.add(message.segment)
        lease = Lease(self.segments[message.segment], message.segment, self.released)
        return _read(message.content, lease, copy=len(self.in_use) > self.limit)

    def collect(self) -> list[int]:
        """Return the segments whose arrays are gone since the last call."""
        numbers = [self.released.pop() for _ in range(len(self.released))]
        self.in_use.difference_update(numbers)
        return numbers


class Lease:
    """Base object of all arrays in a segment, which releases the segment when they are gone.

    Args:
        memory: Bytes of the segment.
        number: Number of the segment.
        released: List that takes the number.
    """

    def __init__(self, memory: Memory, number: int, released: list[int]) -> None:
        self.memory = memory
        self.number = number
        self.released = released
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self.released.append(self.number)


def create(size: int) -> tuple[int, Memory]:
    """Return the file descriptor and the bytes of a new anonymous segment.

    Args:
        size: Size in bytes.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("ember-ml batch")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor, attach(descriptor, size)


def attach(descriptor: int, size: int) -> Memory:
    """Return the bytes of a segment.

    Args:
        descriptor: File descriptor, which may be closed afterward.
        size: Size in bytes.
    """
    return np.frombuffer(mmap.mmap(descriptor, size), np.uint8)


def _is_sendable(leaf: object) -> TypeGuard[np.ndarray]:
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc" and leaf.size > 0


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _view(memory: Memory, slot: Slot) -> np.ndarray:
    return np.ndarray(slot.shape, slot.dtype, memory, slot.offset)


def _written(content: Pytree, memory: Memory) -> Pytree:
    """Return the pytree with slots for its arrays, which are copied to a segment."""
    end = 0

    def write(leaf: object) -> object:
        nonlocal end
        if not _is_sendable(leaf):
            return leaf
        slot = Slot(leaf.dtype.str, leaf.shape, end)
        _view(memory, slot)[...] = leaf
        end += _aligned(leaf.nbytes)
        return slot

    return tree.map_leaves(write, content)


def _read(content: Pytree, lease: Lease, *, copy: bool) -> Pytree:
    """Return the pytree with arrays for its slots; without a copy they share the segment."""
    memory = np.asarray(lease)

    def read(leaf: object) -> object:
        if not isinstance(leaf, Slot):
            return leaf
        array = _view(memory, leaf)
        return array.copy() if copy else array

    return tree.map_leaves(read, content)


def _send_descriptor(connection: Connection, descriptor: int) -> None:
    with socket.socket(fileno=os.dup(connection.fileno())) as channel:
        socket.send_fds(channel, [b"s"], [descriptor])


def _receive_descriptor(connection: Connection) -> int:
    with socket.socket(fileno=os.dup(connection.fileno())) as channel:
        _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
    if not descriptors:
        raise EOFError("the connection was closed")
    return descriptors[0]
