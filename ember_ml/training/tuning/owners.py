"""Processes that run trials, and whether they are alive."""

from __future__ import annotations

import os
import secrets
import socket
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Owner:
    """Identity of a tuner, stored with the trials that it starts."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(8)
        self._pid = os.getpid()
        _LIVE.add(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the identity as plain data."""
        if self._pid != os.getpid():  # after a fork this is another owner
            self.token, self._pid = secrets.token_hex(8), os.getpid()
        return {
            "host": socket.gethostname(),
            "pid": self._pid,
            "started": _start_time(self._pid),
            "token": self.token,
        }


_LIVE: weakref.WeakSet[Owner] = weakref.WeakSet()
"""Owners of this process."""


def is_alive(owner: Mapping[str, Any]) -> bool:
    """Return whether an owner may still run its trials; True if it is on another machine.

    Args:
        owner: Data of `Owner.to_dict`.
    """
    if owner.get("host") != socket.gethostname():
        return bool(owner)
    pid = owner.get("pid")
    if pid == os.getpid():
        return any(each.token == owner.get("token") for each in _LIVE)
    if not isinstance(pid, int) or not _exists(pid):
        return False
    return owner.get("started") in (None, _start_time(pid))  # otherwise the number was reused


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except OSError:  # it belongs to another user
        return True
    return not _is_zombie(pid)


def _status(pid: int) -> list[str]:
    """Return the fields of a process in /proc after its name; empty where there is no /proc."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _is_zombie(pid: int) -> bool:
    return _status(pid)[:1] == ["Z"]


def _start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since the system did; None if unknown."""
    status = _status(pid)
    return int(status[19]) if len(status) > 19 else None
