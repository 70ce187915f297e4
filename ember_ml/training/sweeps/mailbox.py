"""Exchange of reports and answers between jobs on a cluster and the parent process."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any


class Mailbox:
    """Holds the reports of jobs until the parent takes them; runs as an asynchronous actor."""

    def __init__(self) -> None:
        self._mail: list[tuple[int, str, Any]] = []
        self._arrived = asyncio.Event()
        self._answers: dict[int, asyncio.Future[bool]] = {}

    async def put(self, at: int, kind: str, value: Any, waits: bool) -> bool:
        """Store a report; return whether the job should continue.

        Args:
            at: Number of the job.
            kind: Kind of the event.
            value: Reported value.
            waits: Whether to wait for the parent's answer.
        """
        answer = asyncio.get_running_loop().create_future()
        if waits:
            self._answers[at] = answer
        self._mail.append((at, kind, value))
        self._arrived.set()
        return await answer if waits else True

    async def wait(self, seconds: float) -> None:
        """Return as soon as there is a report, and at the latest after the given time.

        Args:
            seconds: Maximum time to wait.
        """
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), seconds)

    async def take(self) -> list[tuple[int, str, Any]]:
        """Return the reports that have arrived, and forget them."""
        mail, self._mail = self._mail, []
        self._arrived.clear()
        return mail

    async def answer(self, at: int, goes_on: bool) -> None:
        """Answer the report of a job.

        Args:
            at: Number of the job.
            goes_on: Whether the job should continue.
        """
        future = self._answers.pop(at, None)
        if future is not None and not future.done():
            future.set_result(goes_on)
