"""`Checkpoint(keep=n)` deletes checkpoints of its own run only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml._core.errors import FolderError
from ember_ml.backend import use_backend
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Checkpoint

X = np.random.default_rng(0).standard_normal((40, 3)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def on_numpy():
    with use_backend("numpy"):
        yield


def trainer(folder: Path, keep: int = 2) -> Trainer:
    ops.random.set_seed(1)
    callbacks = [Checkpoint(folder, every_steps=1, keep=keep)]
    return Trainer(nn.layers.Dense(3, 1), "mse", seed=1, callbacks=callbacks, progress=False)


def steps(folder: Path) -> list[str]:
    return sorted(path.name.removeprefix("step-") for path in folder.glob("step-*"))


def test_folders_of_the_user_stay(tmp_path: Path) -> None:
    for name in ("step-by-step", "step-00000099", "step-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text("mine")
    trainer(tmp_path).fit((X, Y), steps=5, batch_size=8)
    assert steps(tmp_path) == ["00000004", "00000005", "00000099", "2", "by-step"]
    assert (tmp_path / "step-00000099" / "notes.txt").read_text() == "mine"


def test_a_foreign_file_is_reported_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "last").mkdir()
    (tmp_path / "last" / "config.json").write_text("mine")
    refused = trainer(tmp_path)
    with pytest.raises(FolderError, match=r"config.json was not written by a save"):
        refused.fit((X, Y), steps=5, batch_size=8)
    assert refused.step == 0


def test_a_new_run_keeps_its_own_and_those_of_the_earlier_run(tmp_path: Path) -> None:
    trainer(tmp_path).fit((X, Y), steps=9, batch_size=8)
    assert steps(tmp_path) == ["00000008", "00000009"]
    trainer(tmp_path).fit((X, Y), steps=4, batch_size=8)
    assert steps(tmp_path) == ["00000003", "00000004", "00000008", "00000009"]


def test_a_resumed_run_deletes_those_of_its_first_part(tmp_path: Path) -> None:
    trainer(tmp_path).fit((X, Y), steps=3, batch_size=8)
    again = trainer(tmp_path).resume(tmp_path / "last")
    again.fit((X, Y), steps=5, batch_size=8)
    assert steps(tmp_path)[-1] > "00000003"
    assert len(steps(tmp_path)) == 2


def test_steps_above_eight_digits_are_ordered_by_time(tmp_path: Path) -> None:
    first = trainer(tmp_path)
    first.step = 99_999_998
    first.fit((X, Y), epochs=1, batch_size=10)
    assert len(steps(tmp_path)) == 2
    assert trainer(tmp_path).resume(tmp_path / "last").step == first.step
    assert steps(tmp_path) == sorted([str(first.step - 1), str(first.step)])


def test_files_that_were_added_to_a_checkpoint_stay(tmp_path: Path) -> None:
    first = trainer(tmp_path, keep=1)
    first.fit((X, Y), steps=1, batch_size=8)
    (tmp_path / "step-00000001" / "notes.txt").write_text("mine")
    trainer(tmp_path, keep=1).resume(tmp_path / "last").fit((X, Y), epochs=1, batch_size=8)
    assert [path.name for path in (tmp_path / "step-00000001").iterdir()] == ["notes.txt"]
