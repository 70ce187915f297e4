"""Servers in processes of their own, on a free port."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
SECONDS = 60
"""How long the start and the end of a server may take."""


class ServerProcess:
    """`ember serve` in a process.

    Args:
        folder: Folder of the model.
        options: Further arguments of the command.
        token: Value of EMBER_SERVE_TOKEN.
    """

    def __init__(self, folder: Path, *options: str, token: str | None = None) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        environment.pop("EMBER_SERVE_TOKEN", None)
        if token is not None:
            environment["EMBER_SERVE_TOKEN"] = token
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ember_ml", "serve", str(folder), "--port", "0", *options],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._started = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._started.wait(SECONDS), "the server does not start"
        found = re.search(r"http://\S+", self.output)
        assert found, self.output
        self.url = found.group()
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=self.url, timeout=SECONDS, headers=headers)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith("serving "):
                self._started.set()
        self._started.set()  # it has ended

    @property
    def output(self) -> str:
        """What the process has printed."""
        return "".join(self.lines)

    def metric(self, name: str) -> float:
        """Return a value of `/metrics`."""
        text = self.client.get("/metrics").text
        (line,) = [line for line in text.splitlines() if line.startswith(name + " ")]
        return float(line.rpartition(" ")[2])

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Return the exit code."""
        code = self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        return code

    def close(self) -> None:
        """End the process in any state."""
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def serving(folder: Path, *options: str, token: str | None = None) -> Iterator[ServerProcess]:
    """Run a server within the block."""
    server = ServerProcess(folder, *options, token=token)
    try:
        yield server
    finally:
        server.close()
