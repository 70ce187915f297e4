"""Processes that are killed, stopped or fail: the job continues from its last checkpoint."""

from __future__ import annotations

import json
import os
import random
import re
import signal
from pathlib import Path

from tests.distributed.launching import Job, launch, running
from tests.distributed.processes import Processes
from tests.robustness.scale import amount

SETTINGS = {"steps": amount(150, 600), "timeout": 20.0}
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


def test_a_disturbed_job_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    undisturbed.mkdir()
    disturbed.mkdir()
    pool = Processes(2)
    expected = pool.run("tests.distributed.jobs:run", folder=str(undisturbed), **SETTINGS)[0]
    pool.close()
    rng = random.Random(0)
    with running(disturbed, SETTINGS, *OPTIONS) as job:
        restarts = -1
        for number in [*[signal.SIGKILL] * amount(1, 10), signal.SIGSTOP]:
            wait_for_restart(job, restarts)
            restarts = job.sign(0).restarts
            rank = disturb(job, number, rng)
        wait_for_restart(job, restarts)
        assert re.search(
            rf"process {rank} has not answered for \d+ s, since step [1-9]", job.output()
        )
        job.process.send_signal(signal.SIGTERM)
        assert job.process.wait(timeout=120) == 128 + signal.SIGTERM
        assert "Stopped at step" in job.output()
    with running(disturbed, SETTINGS, *OPTIONS) as job:
        assert job.process.wait(timeout=300) == 0, job.output()
    result = json.loads((disturbed / "result.json").read_text())
    assert result == json.loads(json.dumps(expected))


def test_the_error_of_the_process_that_failed_first_is_shown_once() -> None:
    done = launch(
        "--backend", "torch", "--nproc", 2, "--max-restarts", 0, "tests.distributed.jobs:failing"
    )
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert "error: process 1 failed first: Traceback" in done.stderr
    assert "ValueError: the second process cannot train" in done.stderr
