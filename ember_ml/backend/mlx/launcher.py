"""Start of processes with mlx.launch, on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ember_ml.backend.interface import Launcher
    from ember_ml.backend.mlx import launcher

    _checked: Launcher = launcher

RESTARTS = False
"""Whether it restarts all processes after one of them has failed."""
MACHINES = False
"""Whether it starts the processes of several machines, if each runs it."""
_PROGRAM = """
import contextlib
from mlx._distributed_utils.launch import main
with contextlib.suppress(KeyboardInterrupt):
    main()
"""
"""The program mlx.launch, which need not be in the path."""
_TRIES = 50
_POLL_SECONDS = 0.1


def count_devices() -> int:
    """Return the number of processes that this machine has devices for."""
    return 1


def run(
    command: Sequence[str], nproc: int, nnodes: str, endpoint: str | None, restarts: int
) -> tuple[int, str]:
    """Run a command in each process; return the exit code and the reason of a failure.

    mlx.launch ends with the code 0 even if a process has failed.

    Args:
        command: The command.
        nproc: Number of processes of this machine.
        nnodes: Number of machines; "1".
        endpoint: Not used.
        restarts: Not used.
    """
    options = ["-n", str(nproc), "--backend", "ring", "--starting-port", str(_free_ports(nproc))]
    words = [sys.executable, "-c", _PROGRAM, *options, "--", *command]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
    with process, _forwarding(process.pid) as received:
        process.wait()
        _wait_for_group(process.pid)
    return (128 + received[0] if received else abs(process.returncode)), ""


@contextlib.contextmanager
def _forwarding(group: int) -> Iterator[list[int]]:
    """Interrupt a group of processes on Ctrl-C and SIGTERM; yield the signals received.

    mlx.launch would leave its processes behind on SIGTERM; on SIGINT it waits for them.
    """
    received: list[int] = []

    def forward(number: int, frame: object) -> None:
        received.append(number)
        os.killpg(group, signal.SIGINT)

    before = {each: signal.signal(each, forward) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _wait_for_group(group: int) -> None:
    """Wait for the processes of a group to end."""
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.killpg(group, 0)
            time.sleep(_POLL_SECONDS)


def _free_ports(count: int) -> int:
    """Return the first of some consecutive ports that no program uses."""
    for _ in range(_TRIES):
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            start = first.getsockname()[1]
        if all(_is_free(start + at) for at in range(count)):
            return start
    raise OSError(f"no {count} consecutive ports are free")


def _is_free(port: int) -> bool:
    with socket.socket() as handle:
        try:
            handle.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True
