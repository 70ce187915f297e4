"""Bounded admission of items into a pipeline."""

from __future__ import annotations

import asyncio
from collections import deque

from ember_ml.nn.pipeline.asynchronous.errors import DeadlineExceeded, PipelineClosed


class Admission:
    """Places for items, granted in the order of the requests.

    Args:
        places: Number of items that may be in the pipeline at once.
    """

    def __init__(self, places: int) -> None:
        self.places = places
        self.free = places
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._waiters: deque[asyncio.Future[None]] = deque()

    @property
    def full(self) -> bool:
        """Whether all places are taken."""
        return self.free <= 0

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a place."""
        return sum(not waiter.done() for waiter in self._waiters)

    def try_acquire(self) -> bool:
        """Take a place if one is free; return whether it was."""
        if self.closed:
            raise PipelineClosed("the pipeline is closed: it accepts no more items")
        if self.free <= 0:
            return False
        self.free -= 1
        return True

    async def acquire(self, deadline: float | None = None) -> None:
        """Take a place; wait until one is free.

        Args:
            deadline: Time of the event loop at which to give up. Default: never.
        """
        if self.try_acquire():
            return
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        timer = None
        if deadline is not None:
            timer = self._loop.call_at(deadline, _expire, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release()  # the place was granted at the same moment
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def release(self) -> None:
        """Return a place: to the first waiter, if there is one."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self.free += 1

    def close(self) -> None:
        """Refuse all requests from now on, and those that wait."""
        self.closed = True
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(
                    PipelineClosed("the pipeline was closed while the item waited for a place")
                )


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(
            DeadlineExceeded("the deadline passed while the item waited for a place in the buffer")
        )
