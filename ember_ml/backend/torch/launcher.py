"""Start of processes with torch's elastic agent, the program behind torchrun."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch.distributed import run as torchrun
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

if TYPE_CHECKING:
    from ember_ml.backend.interface import Launcher
    from ember_ml.backend.torch import launcher

    _checked: Launcher = launcher

RESTARTS = True
"""Whether it restarts all processes after one of them has failed."""
MACHINES = True
"""Whether it starts the processes of several machines, if each runs it."""


def count_devices() -> int:
    """Return the number of processes that this machine has devices for."""
    return max(1, torch.cuda.device_count())


def run(
    command: Sequence[str], nproc: int, nnodes: str, endpoint: str | None, restarts: int
) -> tuple[int, str]:
    """Run a command in each process; return the exit code and the reason of a failure.

    Args:
        command: The command.
        nproc: Number of processes of this machine.
        nnodes: Number of machines, or "MIN:MAX".
        endpoint: Address of the machine where all meet, "HOST:PORT". Default: this machine alone.
        restarts: How many times to restart all processes after one of them has failed.
    """
    meeting = ["--standalone", "--local-addr=127.0.0.1"]
    if endpoint is not None:
        meeting = ["--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}", "--rdzv-id=ember"]
    options = [f"--nnodes={nnodes}", f"--nproc-per-node={nproc}", f"--max-restarts={restarts}"]
    try:
        torchrun.main([*meeting, *options, "--no-python", *command])
    except ChildFailedError as error:
        return _first_failure(error)
    except SignalException as error:
        return 128 + error.sigval, ""
    return 0, ""


def _first_failure(error: ChildFailedError) -> tuple[int, str]:
    """Return the exit code of the process that failed first, and what happened to it."""
    rank, failure = error.get_first_failure()
    if failure.exitcode < 0:
        name = signal.Signals(-failure.exitcode).name
        return 128 - failure.exitcode, f"process {rank} was ended by the signal {name}"
    return failure.exitcode, f"process {rank} ended with exit code {failure.exitcode}"
