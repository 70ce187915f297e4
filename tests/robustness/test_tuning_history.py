"""Searches that are killed: nothing that is done is repeated, nothing half-written is counted."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest

from ember_ml.training.tuning import Float, HistoryWarning, SelfTuningModule

PROGRAM = """
import os, random, signal, sys, time, warnings
from ember_ml.training.tuning import Float, SelfTuningModule

warnings.simplefilter("ignore")
path, kills = sys.argv[1], int(sys.argv[2])
rng = random.Random(0)


def size():
    return os.path.getsize(path) if os.path.exists(path) else 0


def search():
    tuner = SelfTuningModule({"x": Float(0.0, 1.0)}, path, sampler="random")

    def objective(trial):
        with open(path + ".ran", "a") as file:
            file.write(f"{trial.id}\\n")
        for step in range(5):
            trial.report(step, step * trial["x"])
        return trial["x"]

    tuner.fit(objective, budget=10**6)


for _ in range(kills):
    child = os.fork()
    if not child:
        search()
    target = size() + rng.randrange(2000)  # about three trials; not a time, which load changes
    while size() < target:
        time.sleep(0.0002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def test_a_search_survives_50_kills(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    subprocess.run([sys.executable, "-c", PROGRAM, str(path), "50"], check=True, timeout=300)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tuner = SelfTuningModule({"x": Float(0.0, 1.0)}, path, sampler="random")
        done = [trial for trial in tuner.trials if trial.state == "done"]
        lost = tuner.lost()
        while lost := tuner.lost():
            assert tuner.ask().id == lost[0].id
    assert not [each for each in caught if each.category is not HistoryWarning]
    assert len(done) > 20
    assert all(trial.scores["val_accuracy"] == trial["x"] for trial in done)
    assert all(len(trial.reports) == 5 for trial in done)
    records = [json.loads(line) for line in path.read_bytes().splitlines() if _is_whole(line)]
    told = Counter(record["id"] for record in records if record["kind"] == "told")
    assert max(told.values()) == 1
    numbers = [record["id"] for record in records if record["kind"] == "asked"]
    assert numbers == list(range(len(numbers)))
    ran = [int(line) for line in Path(f"{path}.ran").read_text().split()]
    for trial in done:  # once it is done, a trial never runs again
        last = len(ran) - 1 - ran[::-1].index(trial.id)
        restarts = sum(r["kind"] == "restarted" and r["id"] == trial.id for r in records)
        assert ran.count(trial.id) <= 1 + restarts
        assert not [number for number in ran[:last] if number > trial.id + 1]


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


@pytest.mark.parametrize("kind", ["asked", "told"])
def test_a_kill_within_a_write_of_any_record(tmp_path: Path, kind: str) -> None:
    """Cut each record in the middle: the trial runs again, under its number, and counts once."""
    path = tmp_path / "runs.jsonl"
    tuner = SelfTuningModule({"x": Float(0.0, 1.0)}, path, sampler="random")
    for _ in range(3):
        tuner.tell(tuner.ask(), 0.5)
    del tuner
    lines = path.read_bytes().splitlines(keepends=True)
    at = max(n for n, line in enumerate(lines) if json.loads(line)["kind"] == kind)
    path.write_bytes(b"".join(lines[:at]) + lines[at][: len(lines[at]) // 2])
    again = SelfTuningModule({"x": Float(0.0, 1.0)}, path, sampler="random")
    assert [trial.state for trial in again.trials].count("done") == 2
    with pytest.warns(HistoryWarning, match="the last line is incomplete"):
        trial = again.ask()
    assert trial.id == 2
    again.tell(trial, 0.5)
    assert [each.state for each in again.trials] == ["done"] * 3
