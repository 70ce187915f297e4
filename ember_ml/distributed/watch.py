"""Signs of life of the processes, to name the one that hangs or has ended."""

from __future__ import annotations

import atexit
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ember_ml.distributed.errors import DistributedError

INTERVAL = 1.0
"""Seconds from one sign of life to the next."""
PATIENCE = 3 * INTERVAL
"""Seconds without a sign of life after which a process counts as silent."""
STORE_TIMEOUT = 5.0
"""Seconds that the store has to answer: its own process may be the one that hangs."""


class Sign(NamedTuple):
    """What a process last said of itself."""

    number: int
    """Number of signs so far."""
    time: float
    step: int
    doing: str
    since: float
    """Time at which it started what it is doing."""
    problem: str
    """The error that ended it, if any."""


class Watch:
    """Publishes what this process does, and explains which process hangs or has ended.

    A thread writes a sign of life to the store about once in a second. Steps only set attributes.

    Args:
        rank: Number of this process.
        size: Number of processes.
        is_connection_error: Returns whether an error comes from the connection to other processes.
        store: Key-value store of all processes; None if the backend has none.

    Attributes:
        step: Number of the current step.
        doing: What this process is doing, such as "gradients: all_sum".
        is_stopping: Returns whether a signal asks this process to end, which then does not wait to
            find out about others.
    """

    def __init__(
        self, rank: int, size: int, is_connection_error: Callable[[Exception], bool], store: Any
    ) -> None:
        self.rank, self.size = rank, size
        self.step, self.doing = 0, ""
        self.is_stopping: Callable[[], bool] = lambda: False
        self._is_connection_error = is_connection_error
        self._problem = ""
        self._sign = Sign(0, 0.0, 0, "", 0.0, "")
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._has_ended = False
        self._store: Any = None
        self._reader: Any = None
        if store is not None:  # a connection each: a read that blocks must not stop the signs
            self._store, self._reader = store.clone(), store.clone()
            threading.Thread(target=self._publish_all, name="ember-signs", daemon=True).start()
            atexit.register(self._publish_end)

    def start_step(self, step: int) -> None:
        """Note the number of the current step.

        Args:
            step: The number.
        """
        self._problem = ""  # the program has handled it
        is_first, self.step = not self.step, step
        if is_first:
            self._wake.set()  # from now on, the others know that this process trains

    @contextlib.contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Name what the block does; explain its error if the connection to a process fails.

        Args:
            what: The name, such as "gradients" or "all_sum".
        """
        before = self.doing
        self.doing = f"{before}: {what}" if before else what
        started = time.monotonic()
        try:
            yield
        except Exception as error:
            if isinstance(error, DistributedError):
                raise
            if not self._is_connection_error(error):
                problem = f"{type(error).__name__}: {_first_line(error)} ({self.doing})"
                self._problem = self._problem or problem  # the first one is the innermost
                raise
            raise self._explained(error, time.monotonic() - started) from error
        finally:
            self.doing = before

    def _publish_all(self) -> None:
        while not self._has_ended and self._publish():
            self._wake.wait(INTERVAL)
            self._wake.clear()

    def _publish_end(self) -> None:
        """Say why this process ends; without an error, the others do not wait for it."""
        self._has_ended = True
        if self._problem:
            self._publish()

    def _publish(self) -> bool:
        """Write a sign of life; return False if the store is gone."""
        with self._lock:
            last, now = self._sign, time.time()
            is_same = (last.step, last.doing) == (self.step, self.doing)
            since = last.since if is_same and last.number else now
            problem = self._problem if self._has_ended else ""
            self._sign = Sign(last.number + 1, now, self.step, self.doing, since, problem)
            try:
                self._store.set(_key(self.rank), json.dumps(self._sign))
            except RuntimeError:
                return False
        return True

    def _read(self) -> dict[int, Sign | None] | None:
        """Return the last sign of each other process; None if the store does not answer."""
        answer: dict[int, Sign | None] = {}
        others = [rank for rank in range(self.size) if rank != self.rank]

        def read() -> None:
            for rank in others:
                known = self._reader.check([_key(rank)])
                text = self._reader.get(_key(rank)) if known else b"null"
                answer[rank] = Sign(*json.loads(text)) if known else None

        with contextlib.suppress(RuntimeError):
            thread = threading.Thread(target=_quietly, args=(read,), daemon=True)
            thread.start()
            thread.join(STORE_TIMEOUT)
        return answer if len(answer) == len(others) else None

    def _explained(self, error: Exception, waited: float) -> DistributedError:
        """Return the error with the processes that do not answer or are behind."""
        here = f"process {self.rank} in {_place(self.step, self.doing)}"
        text = f"{here} lost contact with the others after {waited:.0f} s"
        reasons = self._reasons() if self._reader is not None else []
        return DistributedError("\n  ".join([f"{text}: {_first_line(error)}", *reasons]))

    def _reasons(self) -> list[str]:
        before = self._read()
        end = time.monotonic() + PATIENCE
        while before is not None and time.monotonic() < end and not self.is_stopping():
            time.sleep(0.1)
        now = None if before is None else self._read()
        if before is None or now is None:
            return [
                "the store of the processes does not answer: the process that holds it (the "
                "launcher, or process 0) hangs or has ended"
            ]
        oldest_first = sorted(now, key=lambda rank: _time_of(now[rank]))
        found = [_reason(rank, before[rank], now[rank], self) for rank in oldest_first]
        return [reason for reason in found if reason]


def _time_of(sign: Sign | None) -> float:
    return 0.0 if sign is None else sign.time


def _reason(rank: int, before: Sign | None, sign: Sign | None, mine: Watch) -> str:
    """Return why a process may be the one that others wait for; empty if it is not."""
    if sign is None:
        return f"process {rank} has given no sign of life since it started"
    age, place = time.time() - sign.time, _place(sign.step, sign.doing)
    if sign.problem:
        return f"process {rank} failed in step {sign.step}: {sign.problem}"
    if before is not None and before.number == sign.number:
        return (
            f"process {rank} has not answered for {age:.0f} s, since {place}: it hangs, is "
            "stopped, or has ended"
        )
    if (sign.step, sign.doing) != (mine.step, mine.doing):
        still = time.time() - sign.since
        return f"process {rank} answers, but has been in {place} for {still:.0f} s"
    return ""


def _place(step: int, doing: str) -> str:
    return f"step {step} ({doing or 'not in a collective'})"


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:300]


def _key(rank: int) -> str:
    return f"ember/signs/{rank}"


def _quietly(read: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):
        read()


_watches: list[Watch] = []


def watch_of(
    rank: int,
    size: int,
    is_connection_error: Callable[[Exception], bool],
    store: Callable[[], Any],
) -> Watch:
    """Return the watch of this process, which is the same for all its worlds.

    Args:
        rank: Number of this process.
        size: Number of processes.
        is_connection_error: Returns whether an error comes from the connection to other processes.
        store: Returns the key-value store of all processes; None if the backend has none.
    """
    if not _watches:
        _watches.append(Watch(rank, size, is_connection_error, store()))
    return _watches[0]
