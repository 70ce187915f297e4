"""The history: bounded memory, saves that cost the new records, exact resume."""

from __future__ import annotations

import json
import os
import resource
import shutil
from pathlib import Path

import pytest

from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.training.callbacks import Checkpoint, LRMonitor
from ember_ml.training.trainer import history
from tests.robustness import regression
from tests.robustness.regression import trainer
from tests.robustness.scale import FULL, amount

pytestmark = pytest.mark.usefixtures("on_numpy")

X, Y = regression.X[:24], regression.Y[:24]


def record(step: int) -> dict[str, float]:
    return {"step": float(step), "epoch": 0.0, "loss": 1.0 / step, "learning_rate": 0.1}


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.name != "history.jsonl")


def test_a_save_costs_the_new_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not FULL:
        monkeypatch.setattr(history, "WINDOW", 1000)
    long = trainer()
    long.save(tmp_path / "run")
    small = size(tmp_path / "run")
    count = amount(5_000, 1_000_000)
    for step in range(1, count + 1):
        long.history.add_step(record(step))
    long.save(tmp_path / "run")
    log = tmp_path / "run" / "history.jsonl"
    before, inode = log.stat().st_size, log.stat().st_ino
    long.history.add_step(record(count + 1))
    long.save(tmp_path / "run")
    after = log.stat()
    assert after.st_ino == inode  # it was appended to
    assert 0 < after.st_size - before < 200
    assert size(tmp_path / "run") < small + 1000
    assert len(long.history.steps) <= 1.25 * history.WINDOW
    again = trainer().resume(tmp_path / "run")
    assert again.history.steps[-1] == record(count + 1)
    assert len(again.history.steps) <= 1.25 * history.WINDOW
    steps = [each["step"] for each in again.history.all_steps()]
    assert steps == [float(step) for step in range(1, count + 2)]
    long.save(tmp_path / "other")
    assert (tmp_path / "other" / "history.jsonl").stat().st_ino == inode  # a hard link


def test_records_are_the_same_with_a_small_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trainer()
    whole.fit((X, Y), epochs=9, batch_size=4)
    monkeypatch.setattr(history, "WINDOW", 4)
    for stop in (2, 29):
        first = trainer(Checkpoint(tmp_path / str(stop), every_steps=stop, keep=2))
        first.fit((X, Y), until_step=stop, batch_size=4)
        again = trainer(Checkpoint(tmp_path / str(stop), every_steps=9, keep=2))
        again.resume(tmp_path / str(stop) / "last").fit((X, Y), until_epoch=9, batch_size=4)
        assert len(again.history.steps) <= 6
        for mine, theirs in zip(again.history.all_steps(), whole.history.steps, strict=True):
            assert mine == theirs
        epochs = list(again.history.all_epochs())
        assert [r["loss"] for r in epochs] == whole.history.column("loss")


def test_values_that_a_later_callback_adds_are_in_the_log(tmp_path: Path) -> None:
    first = trainer(Checkpoint(tmp_path, every_steps=1), LRMonitor())
    first.fit((X, Y), steps=6, batch_size=4)
    first.save(tmp_path / "last")
    again = trainer().resume(tmp_path / "last")
    assert again.history.steps == first.history.steps
    assert all("learning_rate/0" in each for each in again.history.steps)


@pytest.mark.parametrize("tail", [b'{"kind":"step","reco', b"\x00\xff", b'{"kind":"step"}\n'])
def test_a_torn_last_line_survives(tail: bytes, tmp_path: Path) -> None:
    first = trainer()
    first.fit((X, Y), epochs=2, batch_size=4)
    first.save(tmp_path / "run")
    with open(tmp_path / "run" / "history.jsonl", "ab") as file:
        file.write(tail)
    again = trainer().resume(tmp_path / "run")
    assert again.history.steps == first.history.steps
    again.fit((X, Y), until_epoch=3, batch_size=4)
    again.save(tmp_path / "run")
    for line in (tmp_path / "run" / "history.jsonl").read_bytes().splitlines():
        assert json.loads(line)["record"]
    once_more = trainer().resume(tmp_path / "run")
    assert once_more.history.losses == trainer().fit((X, Y), epochs=3, batch_size=4).losses


def test_a_damaged_log_is_refused_and_a_missing_one_is_a_warning(tmp_path: Path) -> None:
    first = trainer()
    first.fit((X, Y), epochs=2, batch_size=4)
    first.save(tmp_path / "run")
    log = tmp_path / "run" / "history.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"step":2.0', b'"step":9.0', 1))
    with pytest.raises(CheckpointError, match=r"history.jsonl is damaged.*delete it to resume"):
        trainer().resume(tmp_path / "run")
    log.unlink()
    with pytest.warns(UserWarning, match=r"history.jsonl is missing"):
        again = trainer().resume(tmp_path / "run")
    assert again.step == first.step
    again.save(tmp_path / "run")
    trainer().resume(tmp_path / "run")


def test_a_copied_or_moved_checkpoint_resumes(tmp_path: Path) -> None:
    first = trainer(Checkpoint(tmp_path / "run", every_steps=1, keep=3))
    first.fit((X, Y), steps=8, batch_size=4)
    shutil.copytree(tmp_path / "run" / "step-00000006", tmp_path / "copy")
    shutil.rmtree(tmp_path / "run")
    again = trainer().resume(tmp_path / "copy")
    assert again.history.steps == first.history.steps[:6]
    first.save(tmp_path / "new")  # although the folder with its log is gone
    assert trainer().resume(tmp_path / "new").history.steps == first.history.steps


def test_a_run_that_goes_back_does_not_change_the_log_of_later_checkpoints(tmp_path: Path) -> None:
    first = trainer(Checkpoint(tmp_path, every_steps=1, keep=9))
    first.fit((X, Y), steps=8, batch_size=4)
    other = trainer(Checkpoint(tmp_path, every_steps=1)).resume(tmp_path / "step-00000003")
    other.optimizer.learning_rate = 0.5
    other.fit((X, Y), until_step=6, batch_size=4)
    for step in range(1, 9):
        again = trainer().resume(tmp_path / f"step-{step:08d}")
        assert again.history.steps == first.history.steps[:step]
    assert trainer().resume(tmp_path / "last").history.steps == other.history.steps


def test_checkpoints_with_the_history_inside_still_resume(tmp_path: Path) -> None:
    first = trainer()
    first.fit((X, Y), epochs=2, batch_size=4)
    first.save(tmp_path / "run")
    for name in ("checksums.json", "history.jsonl"):
        os.unlink(tmp_path / "run" / name)
    file = tmp_path / "run" / "training.json"
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "history": first.history.state_dict()}))
    again = trainer().resume(tmp_path / "run")
    assert again.history.steps == first.history.steps
    assert again.history.epochs == first.history.epochs
    again.save(tmp_path / "run")
    assert trainer().resume(tmp_path / "run").history.steps == first.history.steps


def test_a_disk_that_is_full_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    ours = trainer()
    for step in range(1, 201):
        ours.history.add_step(record(step))
    ours.save(tmp_path / "run")
    log = tmp_path / "run" / "history.jsonl"
    before = log.stat()
    for step in range(201, 301):
        ours.history.add_step(record(step))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (before.st_size + 100, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            ours.save(tmp_path / "run")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert log.stat().st_size == before.st_size
    ours.save(tmp_path / "run")
    assert log.stat().st_ino == before.st_ino  # it was appended to
    assert len(list(trainer().resume(tmp_path / "run").history.all_steps())) == 300


def test_a_run_does_not_overwrite_records_that_another_one_appended(tmp_path: Path) -> None:
    first = trainer()
    first.fit((X, Y), steps=2, batch_size=8)
    first.save(tmp_path / "shared")
    second = trainer().resume(tmp_path / "shared")
    second.fit((X, Y), steps=6, batch_size=8)
    second.save(tmp_path / "shared")
    second.save(tmp_path / "own")  # a hard link to the same log
    for _ in range(2):
        first.fit((X, Y), steps=3, batch_size=4)
        first.save(tmp_path / "shared")
    assert trainer().resume(tmp_path / "own").history.losses == second.history.losses
    assert trainer().resume(tmp_path / "shared").history.losses == first.history.losses
