"""Searches whose parent process is killed, in a trial and in a write to the history."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.robustness.scale import amount

PROGRAM = """
import os, signal, sys, warnings
from ember_ml import set_backend
from ember_ml.training.tuning import Float, HistoryWarning, SelfTuningModule, log_file
from tests.unit.training.tuning import objectives

def tear(at):
    "Write half of the record number `at`, and end as if by kill -9."
    write, seen = log_file._write, []
    def torn(file, content):
        seen.append(content)
        if len(seen) == at:
            os.write(file.fileno(), content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        write(file, content)
    log_file._write = torn

if __name__ == "__main__":
    path, budget, at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore", HistoryWarning)
    set_backend("numpy")
    tuner = SelfTuningModule({"x": Float(0.0, 1.0)}, path, "score", sampler="random")
    if at:
        tear(at)
    print("ready", flush=True)
    tuner.fit(objectives.slow, budget=budget, workers=2)
"""
OVER = ("told", "pruned", "failed")


def search(folder: Path, history: Path, budget: int, torn_write: int = 0) -> subprocess.Popen[str]:
    program = folder / "search.py"
    program.write_text(PROGRAM)
    return subprocess.Popen(
        [sys.executable, str(program), str(history), str(budget), str(torn_write)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TUNING_LOG": str(folder / "starts")},
        start_new_session=True,
    )


def records(history: Path) -> list[dict]:
    """Return the complete records of a history, in order."""
    found = []
    for line in history.read_bytes().split(b"\n"):
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def check(history: Path) -> dict[int, float]:
    """Return the score of each completed trial; nothing follows the end of a trial."""
    scores: dict[int, float] = {}
    for record in records(history):
        number = record.get("id")
        assert number not in scores, f"trial {number} was done already: {record}"
        if record["kind"] in OVER:
            assert record["kind"] == "told"
            scores[number] = record["values"]["score"]
    return scores


def test_killed_in_trials_and_in_writes(tmp_path: Path) -> None:
    history, rng = tmp_path / "history.jsonl", random.Random(0)
    done: dict[int, float] = {}
    for at in range(amount(2, 50)):
        torn = rng.randint(1, 12) if at % 2 else 0
        budget = len(done) + 8  # more than 12 writes remain, however fast the machine is
        with search(tmp_path, history, budget, torn) as process:
            assert process.stdout is not None
            process.stdout.readline()
            if torn:
                assert process.wait(timeout=120) == -signal.SIGKILL
                assert not history.read_bytes().endswith(b"\n"), "the last record is torn"
            else:
                time.sleep(rng.uniform(0.0, 2.5))
                os.kill(process.pid, signal.SIGKILL)
        found = check(history)
        assert done.items() <= found.items()
        done = found
    budget = len(done) + 8
    with search(tmp_path, history, budget) as process:
        assert process.wait(timeout=300) == 0
    found = check(history)
    assert done.items() <= found.items()
    assert sorted(found) == list(range(budget))
    undisturbed = tmp_path / "other.jsonl"
    with search(tmp_path, undisturbed, budget) as process:
        assert process.wait(timeout=300) == 0
    assert check(undisturbed) == found
