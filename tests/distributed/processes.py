"""Processes that train together, for tests: each runs the same function."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@functools.cache
def namespace() -> list[str]:
    """Return the command that runs a program in a network with a loopback interface only.

    It is empty where the system does not allow it.
    """
    command = ["unshare", "--map-root-user", "--net"]
    try:
        allowed = subprocess.run([*command, "true"], capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return command if allowed.returncode == 0 else []


class Processes:
    """Several processes of one backend.

    Args:
        number: Number of processes.
        backend: Name of the backend.
    """

    def __init__(self, number: int, backend: str = "torch") -> None:
        self.number = number
        self.backend = backend
        self._start()

    def _start(self) -> None:
        program = [sys.executable, "-m", "tests.distributed.host", str(self.number), self.backend]
        self._host = subprocess.Popen(
            [*namespace(), *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )

    def run(self, function: str, **arguments: Any) -> list[Any]:
        """Return the results of a function in each process; raise if one of them failed.

        Args:
            function: "module:name".
            **arguments: Its arguments, as plain data.
        """
        replies = self.replies(function, **arguments)
        errors = [f"process {at}: {x['error']}" for at, x in enumerate(replies) if "error" in x]
        assert not errors, "\n".join(errors)
        return [reply["result"] for reply in replies]

    def replies(self, function: str, **arguments: Any) -> list[dict[str, Any]]:
        """Return the result or the error of each process."""
        task = json.dumps({"function": function, "arguments": arguments})
        assert self._host.stdin is not None
        assert self._host.stdout is not None
        self._host.stdin.write(task + "\n")
        self._host.stdin.flush()
        line = self._host.stdout.readline()
        assert line, "the processes have ended"
        replies: list[dict[str, Any]] = json.loads(line)
        if any("error" in reply for reply in replies):  # the host has ended
            self.close()
            self._start()
        return replies

    def close(self) -> None:
        """End the processes."""
        assert self._host.stdin is not None
        self._host.stdin.close()
        try:
            self._host.wait(timeout=60)
        finally:
            self._host.kill()
            assert self._host.stdout is not None
            self._host.stdout.close()
