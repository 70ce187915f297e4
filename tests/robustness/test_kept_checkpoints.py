"""`Checkpoint(keep=n)` deletes checkpoints of its own run only."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from ember_ml._core.errors import FolderError
from ember_ml._core.folders import remove_folder
from ember_ml.nn.checkpoint import KIND
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback, Checkpoint, CSVLogger
from tests.robustness import regression
from tests.robustness.regression import X, Y

pytestmark = pytest.mark.usefixtures("on_numpy")


def trainer(folder: Path, keep: int = 2) -> Trainer:
    return regression.trainer(Checkpoint(folder, every_steps=1, keep=keep))


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


def test_a_run_resumed_in_another_folder_keeps_its_checkpoints(tmp_path: Path) -> None:
    for name in ("a", "b"):
        trainer(tmp_path / name).fit((X, Y), steps=3, batch_size=8)
    trainer(tmp_path / "b").resume(tmp_path / "a" / "last").fit((X, Y), steps=5, batch_size=8)
    assert steps(tmp_path / "a") == ["00000002", "00000003"]
    assert steps(tmp_path / "b") == ["00000002", "00000003", "00000004", "00000005"]


def test_a_moved_run_deletes_its_own(tmp_path: Path) -> None:
    trainer(tmp_path / "a").fit((X, Y), steps=3, batch_size=8)
    os.rename(tmp_path / "a", tmp_path / "b")
    trainer(tmp_path / "b").resume(tmp_path / "b" / "last").fit((X, Y), steps=5, batch_size=8)
    assert steps(tmp_path / "b") == ["00000004", "00000005"]


def test_a_foreign_file_in_a_step_folder_does_not_end_the_training(tmp_path: Path) -> None:
    mine = tmp_path / "step-00000002" / "config.json"
    mine.parent.mkdir()
    mine.write_text("mine")
    run = trainer(tmp_path)
    with pytest.warns(UserWarning, match=r"could not be saved at step 2: .* not overwritten"):
        run.fit((X, Y), steps=5, batch_size=8)
    assert run.step == 5
    assert mine.read_text() == "mine"


def test_a_file_in_place_of_a_checkpoint_is_reported_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "last").write_text("mine")
    refused = trainer(tmp_path)
    with pytest.raises(NotADirectoryError, match="is a file, not a folder"):
        refused.fit((X, Y), steps=5, batch_size=8)
    assert refused.step == 0


class ChangeFolder(Callback):
    """Changes the working directory after each step."""

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        os.makedirs("sub")
        os.chdir("sub")


def test_a_relative_path_does_not_follow_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = trainer(Path("runs"))
    run.callbacks = [ChangeFolder(), *run.callbacks, CSVLogger("log.csv", every_steps=1)]
    run.fit((X, Y), steps=3, batch_size=8)
    assert steps(tmp_path / "runs") == ["00000002", "00000003"]
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 4
    assert [path.name for path in (tmp_path / "sub").iterdir()] == ["sub"]


@pytest.mark.parametrize("content", [b"run,accuracy\n1,0.9\n", b"\xff\xfe", b"text"])
@pytest.mark.parametrize("resumed", [False, True])
def test_a_csv_file_of_another_program_is_renamed(
    content: bytes, resumed: bool, tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(content)
    run = trainer(tmp_path / "runs")
    run.fit((X, Y), steps=2 if resumed else 0, batch_size=8)
    run.callbacks = [CSVLogger(log, every_steps=1)]
    with pytest.warns(UserWarning, match=r"renamed it to log-1\.csv"):
        run.fit((X, Y), steps=3, batch_size=8)
    assert (tmp_path / "log-1.csv").read_bytes() == content
    assert len(log.read_text().splitlines()) == 4


def test_a_script_that_runs_again_keeps_the_csv_file_of_the_first_run(tmp_path: Path) -> None:
    def script() -> str:
        run = trainer(tmp_path / "runs")
        run.callbacks = [CSVLogger(tmp_path / "log.csv")]
        run.fit((X, Y), epochs=2, batch_size=8)
        return (tmp_path / "log.csv").read_text()

    first = script()
    for _ in range(2):
        with pytest.warns(UserWarning, match="was not written by this training"):
            script()
    assert (tmp_path / "log-1.csv").read_text() == first
    assert (tmp_path / "log-2.csv").exists()


@pytest.mark.parametrize("removed", range(7))
def test_the_rest_of_an_interrupted_removal_is_removed(
    removed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer(tmp_path).fit((X, Y), steps=3, batch_size=8)
    unlink, calls = os.unlink, []

    def dying(path, **options) -> None:
        calls.append(path)
        if len(calls) > removed:
            raise KeyboardInterrupt
        unlink(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", dying)
        with contextlib.suppress(KeyboardInterrupt):
            remove_folder(tmp_path / "step-00000002", KIND)
    assert len(calls) == min(removed + 1, 6)
    trainer(tmp_path).resume(tmp_path / "last").fit((X, Y), steps=5, batch_size=8)
    assert steps(tmp_path) == ["00000004", "00000005"]
