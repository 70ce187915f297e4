"""Processes that are killed, stopped or fail: the job continues from its last checkpoint."""

from __future__ import annotations

import os
import random
import re
import signal
from pathlib import Path

from tests.distributed.launching import Job, running
from tests.robustness.scale import FULL, amount

SETTINGS = {"steps": amount(60, 600), "timeout": 12.0}
OPTIONS = ("--backend", "torch", "--nproc", 2, "--max-restarts", 30)


def disturb(job: Job, number: int, rng: random.Random) -> int:
    """Send a signal to a random process after some steps; return the rank of the process."""
    rank = rng.randrange(2)
    count = rng.randint(5, 25)
    job.wait_until(lambda: job.sign(rank).step > 0)
    begin = job.sign(rank).step
    job.wait_until(lambda: job.sign(rank).step >= begin + count)
    pid = job.sign(rank).pid
    assert pid > 0
    os.kill(pid, number)
    return rank


def wait_for_restart(job: Job, restarts: int) -> None:
    """Wait until all processes train again."""
    job.wait_until(lambda: all(job.sign(rank).restarts > restarts for rank in range(2)))


def kill_after_the_other(job: Job, rank: int) -> None:
    """Kill a stopped process once the other one has failed; torch's agent waits for 30 s."""
    stopped, other = job.sign(rank).pid, job.sign(1 - rank).pid
    job.wait_until(lambda: not Path(f"/proc/{other}").exists())
    os.kill(stopped, signal.SIGKILL)


def test_a_disturbed_job_ends_as_an_undisturbed_one(pools, tmp_path: Path) -> None:
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    undisturbed.mkdir()
    disturbed.mkdir()
    expected = pools(2).run("tests.distributed.jobs:run", folder=str(undisturbed), **SETTINGS)
    rng = random.Random(0)
    with running(disturbed, SETTINGS, *OPTIONS) as job:
        restarts = -1
        for number in [*[signal.SIGKILL] * amount(0, 10), signal.SIGSTOP]:
            wait_for_restart(job, restarts)
            restarts = job.sign(0).restarts
            rank = disturb(job, number, rng)
        if not FULL:
            kill_after_the_other(job, rank)
        wait_for_restart(job, restarts)
        silent = rf"process {rank} has not answered for \d+ s, since step [1-9]"
        assert re.search(silent, job.output())
        job.process.send_signal(signal.SIGTERM)
        assert job.process.wait(timeout=120) == 128 + signal.SIGTERM
        assert "Stopped at step" in job.output()
    # the run continues anywhere: here in processes that another launcher has started
    assert pools(2).run("tests.distributed.jobs:run", folder=str(disturbed), **SETTINGS) == expected
