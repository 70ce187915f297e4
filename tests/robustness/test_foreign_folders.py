"""Saves and loads next to folders of the user that look like those of a save."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import ember_ml
from ember_ml import nn
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.training import Trainer

pytestmark = pytest.mark.usefixtures("on_numpy")


def model() -> nn.Module:
    return nn.layers.Dense(2, 2)


def folder(path: Path, *names: str) -> Path:
    path.mkdir(parents=True)
    for name in names:
        (path / name).write_text("mine")
    return path


@pytest.mark.parametrize("name", ["m", "*", "[m]", "?"])
def test_folders_of_the_user_next_to_the_target_stay(name: str, tmp_path: Path) -> None:
    mine = [
        folder(tmp_path / f".{name}.old", "thesis.txt"),
        folder(tmp_path / f".{name}.new-abcd1234", "config.json", "thesis.txt"),
        folder(tmp_path / f".{name}.new-draft"),
        folder(tmp_path / ".m.new-12345678", "thesis.txt"),
        folder(tmp_path / ".m.new-letters", "config.json"),
    ]
    for _ in range(2):
        ember_ml.save(model(), tmp_path / name)
    assert all(path.is_dir() for path in mine)
    assert not (tmp_path / name / "thesis.txt").exists()


def test_a_backup_next_to_the_target_stays(tmp_path: Path) -> None:
    ember_ml.save(model(), tmp_path / "m")
    shutil.copytree(tmp_path / "m", tmp_path / ".m.old")
    ember_ml.save(model(), tmp_path / "m")
    ember_ml.load(tmp_path / ".m.old")


def test_files_in_the_old_folder_of_an_earlier_version_stay(tmp_path: Path) -> None:
    ember_ml.save(model(), tmp_path / "m")
    (tmp_path / "m" / "checksums.json").unlink()
    shutil.copytree(tmp_path / "m", tmp_path / ".m.old")
    (tmp_path / ".m.old" / "notes.txt").write_text("mine")
    ember_ml.save(model(), tmp_path / "m")
    assert (tmp_path / ".m.old" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "stale", ["../precious", "{absolute}", "sub/../../precious", "..", 3], ids=str
)
def test_a_checkpoint_cannot_delete_files_outside_of_its_folder(
    stale: object, tmp_path: Path
) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "m" / "sub").mkdir(parents=True)
    ember_ml.save(model(), tmp_path / "m")
    name = stale.format(absolute=tmp_path / "precious") if isinstance(stale, str) else stale
    folder(tmp_path / "m" / ".ember-save")
    (tmp_path / "m" / ".ember-save" / ".stale.json").write_text(json.dumps([name]))
    for use in (ember_ml.load, Trainer(model(), "mse", progress=False).resume):
        with pytest.raises(CheckpointError, match=r"\.stale\.json is damaged"):
            use(tmp_path / "m")
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize("content", [b"{", b"5", b"\xff", b'{"a": 1}', b"[" * 100_000])
def test_a_damaged_list_of_removed_files_is_an_error(content: bytes, tmp_path: Path) -> None:
    ember_ml.save(model(), tmp_path / "m")
    folder(tmp_path / "m" / ".ember-save")
    (tmp_path / "m" / ".ember-save" / ".stale.json").write_bytes(content)
    with pytest.raises(CheckpointError, match="is damaged"):
        ember_ml.load(tmp_path / "m")
    with pytest.raises(CheckpointError, match="is damaged"):
        ember_ml.save(model(), tmp_path / "m")


@pytest.mark.parametrize("use", ["load", "save"])
def test_files_that_no_save_wrote_are_not_moved_over_others(use: str, tmp_path: Path) -> None:
    ember_ml.save(model(), tmp_path / "m")
    folder(tmp_path / "m" / ".ember-save", "notes.txt")
    (tmp_path / "m" / "notes.txt").write_text("older")
    with pytest.raises(CheckpointError, match=r"notes\.txt was not written by a save"):
        ember_ml.load(tmp_path / "m") if use == "load" else ember_ml.save(model(), tmp_path / "m")
    assert (tmp_path / "m" / "notes.txt").read_text() == "older"


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "模型 ü\n'", "*", " "])
def test_every_name_that_a_folder_can_have(name: str, tmp_path: Path) -> None:
    trainer = Trainer(model(), "mse", progress=False)
    for _ in range(2):
        trainer.save(tmp_path / name)
    trainer.resume(tmp_path / name)
    assert os.listdir(tmp_path) == [name]
