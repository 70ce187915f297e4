"""Saves next to foreign files, with links, crashes, concurrent writers and damaged files."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml._core import folders, locks
from ember_ml._core.errors import FolderError
from ember_ml._core.files import write_atomically
from ember_ml.backend import use_backend
from ember_ml.nn import layers
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.nn.models.convert import convert, export
from ember_ml.nn.state_dict import StateDictError
from ember_ml.training import Trainer
from tests.robustness.scale import FULL, amount

pytestmark = pytest.mark.usefixtures("on_numpy")

STRIDE = amount(4, 1)
"""Distance between the file operations at which a save is killed."""
MODEL_FILES = {"checksums.json", "config.json", "model.safetensors"}
TRAINING_FILES = {"training.json", "training.safetensors"}


def language_model() -> nn.Module:
    return nn.models.TransformerModel(
        16, 8, num_heads=2, num_layers=1, gated=True, activation="silu", bias=False
    )


def save_trainer(model: nn.Module, path: Path) -> None:
    Trainer(model, "cross_entropy", progress=False).save(path)


SAVES: dict[str, Callable[[nn.Module, Path], None]] = {
    "save": ember_ml.save,
    "save_pretrained": lambda model, path: model.save_pretrained(path),
    "trainer": save_trainer,
    "export": export,
}


def filled(model: nn.Module, value: float) -> nn.Module:
    for parameter in model.parameters():
        parameter.assign(ops.full(parameter.shape, value))
    return model


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("write", SAVES.values(), ids=SAVES)
def test_foreign_files_stay(write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "deep" / "code.py").write_text("pass")
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    model = language_model()
    for path in (tmp_path, Path(".")):
        write(model, path)
        assert (tmp_path / "notes.txt").read_text() == "mine"
        assert (tmp_path / "src" / "deep" / "code.py").read_text() == "pass"
        assert names(tmp_path) >= {"notes.txt", "tokenizer.json", "src", ".git", *MODEL_FILES}
    assert not [name for name in names(tmp_path) if name.startswith(".ember")]


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "checksums.json"])
@pytest.mark.parametrize("write", SAVES.values(), ids=SAVES)
def test_a_file_that_no_save_wrote_is_not_overwritten(write, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('{"model_type": "llama", "transformers_version": "5"}')
    before = (tmp_path / name).read_bytes()
    with pytest.raises((FolderError, CheckpointError), match=f"{name} was (not )?written by"):
        write(language_model(), tmp_path)
    assert (tmp_path / name).read_bytes() == before
    assert names(tmp_path) == {name}


def test_a_training_file_of_the_user_is_not_overwritten(tmp_path: Path) -> None:
    ember_ml.save(language_model(), tmp_path)
    (tmp_path / "training.json").write_text("mine")
    ember_ml.save(language_model(), tmp_path)
    with pytest.raises(CheckpointError, match=r"training.json was not written"):
        save_trainer(language_model(), tmp_path)
    assert (tmp_path / "training.json").read_text() == "mine"


def test_an_export_does_not_replace_a_checkpoint_nor_the_reverse(tmp_path: Path) -> None:
    model = language_model()
    ember_ml.save(model, tmp_path / "own")
    export(model, tmp_path / "theirs")
    with pytest.raises(FolderError, match="not written by a save of a model for transformers"):
        export(model, tmp_path / "own")
    with pytest.raises(CheckpointError, match="not written by a save of an Ember checkpoint"):
        ember_ml.save(model, tmp_path / "theirs")
    ember_ml.load(tmp_path / "own")


def test_an_export_does_not_replace_what_transformers_saved_after_it(tmp_path: Path) -> None:
    model = language_model()
    export(model, tmp_path)
    export(model, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "transformers_version": "5"}))
    with pytest.raises(FolderError, match="written by transformers"):
        export(model, tmp_path)


def test_an_interrupted_export_is_converted(tmp_path: Path) -> None:
    model = filled(language_model(), 1.0)
    export(filled(language_model(), 0.0), tmp_path)
    hidden = tmp_path / folders.COMMITTED
    export(model, tmp_path / "new")
    os.rename(tmp_path / "new", hidden)  # as after a crash once the save is committed
    assert (convert(tmp_path).embedding.weight == 1.0).all()
    assert not hidden.exists()


@pytest.mark.parametrize("legacy", [False, True])
def test_a_save_without_training_removes_the_training_state(tmp_path: Path, legacy: bool) -> None:
    save_trainer(language_model(), tmp_path)
    assert names(tmp_path) >= TRAINING_FILES
    (tmp_path / "notes.txt").write_text("mine")
    if legacy:  # earlier versions wrote no checksums
        (tmp_path / "checksums.json").unlink()
    ember_ml.save(language_model(), tmp_path)
    assert names(tmp_path) == {*MODEL_FILES, "notes.txt"}


@pytest.mark.parametrize("write", SAVES.values(), ids=SAVES)
def test_a_linked_folder_keeps_its_link(write, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk", target_is_directory=True)
    (tmp_path / "later").symlink_to(tmp_path / "missing" / "folder")
    for _ in range(3):
        for name in ("run", "later"):
            write(language_model(), tmp_path / name)
    assert (tmp_path / "run").is_symlink()
    assert (tmp_path / "later").is_symlink()
    assert names(tmp_path / "disk") >= MODEL_FILES
    assert names(tmp_path / "missing" / "folder") >= MODEL_FILES


def test_leftovers_of_earlier_versions_are_recovered(tmp_path: Path) -> None:
    model = filled(layers.Dense(2, 2), 7.0)
    ember_ml.save(model, tmp_path / "m")
    (tmp_path / "m" / "checksums.json").unlink()
    os.rename(tmp_path / "m", tmp_path / ".m.old")
    shutil.copytree(tmp_path / ".m.old", tmp_path / ".m.new-abcd_123")
    assert (ember_ml.load(tmp_path / "m").weight == 7.0).all()
    ember_ml.save(filled(model, 8.0), tmp_path / "m")
    assert (ember_ml.load(tmp_path / "m").weight == 8.0).all()
    assert names(tmp_path) == {"m"}


def save_and_die(
    path: Path, value: float, calls: int, create: Callable[[], nn.Module] = language_model
) -> bool:
    """Save in a new process that ends at its n-th file operation; return whether it got there."""
    child = os.fork()
    if not child:
        left = calls

        def dying(function):
            def call(*args, **options):
                nonlocal left
                left -= 1
                if left < 0:
                    os._exit(9)
                return function(*args, **options)

            return call

        for name in ("open", "mkdir", "replace", "rename", "unlink", "rmdir", "fsync"):
            setattr(os, name, dying(getattr(os, name)))
        save_trainer(filled(create(), value), path)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def value_of(path: Path) -> float:
    """Return the value of all weights of a checkpoint, in both of its files."""
    trainer = Trainer(filled(language_model(), -1.0), "cross_entropy", progress=False)
    trainer.resume(path)
    states = [ember_ml.load(path).state_dict(), trainer.model.state_dict()]
    values = {float(x.numpy().flat[0]) for state in states for x in state.values()}
    assert len(values) == 1
    return values.pop()


@pytest.mark.parametrize("first", [save_trainer, ember_ml.save, None])
def test_a_crash_at_any_file_operation_leaves_the_old_or_the_new(first, tmp_path: Path) -> None:
    crashes, seen = 0, set()
    while True:
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
        if first is not None:
            first(filled(language_model(), 0.0), folder)
        died = save_and_die(folder, 1.0, crashes)
        assert (folder / "notes.txt").read_text() == "mine"
        if not folders.holds(folder, "config.json"):
            assert first is None
        elif folders.holds(folder, "training.json"):
            seen.add(value_of(folder))
        else:
            assert (ember_ml.load(folder).embedding.weight == 0.0).all()
        save_trainer(filled(language_model(), 2.0), folder)
        assert value_of(folder) == 2.0
        assert not [name for name in names(folder) if name.startswith(".ember")]
        if not died:
            break
        crashes += STRIDE
    assert crashes > 15
    assert seen == ({0.0, 1.0} if first is save_trainer else {1.0})


class Numbered(layers.Dense):
    """Layer whose weights are also in extra files: always in one, and in another if they are 1."""

    def __init__(self) -> None:
        super().__init__(2, 2)

    def extra_files(self) -> dict[str, bytes]:
        value = float(self.weight[0, 0])
        return {"a.txt": str(value).encode(), **({"b.txt": b"1"} if value == 1.0 else {})}

    def load_extra_files(self, files: Mapping[str, bytes]) -> None:
        self.loaded = dict(files)


@pytest.mark.parametrize("old", [0.0, 1.0])
def test_a_crash_leaves_the_old_or_the_new_extra_files(old: float, tmp_path: Path) -> None:
    crashes, seen = 0, set()
    while True:
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        save_trainer(filled(Numbered(), old), folder)
        (folder / "notes.txt").write_text("mine")
        died = save_and_die(folder, 1.0 - old, crashes, Numbered)
        model = ember_ml.load(folder, into=filled(Numbered(), -1.0))
        seen.add(float(model.weight[0, 0]))
        assert model.loaded == model.extra_files()
        save_trainer(filled(Numbered(), 2.0), folder)
        assert names(folder) == {
            *MODEL_FILES,
            *TRAINING_FILES,
            "history.jsonl",
            "a.txt",
            "notes.txt",
        }
        if not died:
            break
        crashes += STRIDE
    assert crashes > 15
    assert seen == {0.0, 1.0}


@pytest.mark.skipif(os.name == "nt", reason="needs file permissions")
def test_an_interrupted_save_is_read_from_a_read_only_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    save_trainer(filled(language_model(), 0.0), folder)
    publish = folders._publish

    def read_only(target: Path) -> None:
        if (target / folders.COMMITTED).is_dir():
            raise PermissionError(13, "Permission denied")

    reads = 0
    for calls in range(0, 200, STRIDE):
        if not save_and_die(folder, 1.0, calls):
            break
        if not (folder / folders.COMMITTED).is_dir():
            continue
        with monkeypatch.context() as patch:
            patch.setattr(folders, "_publish", read_only)
            assert value_of(folder) == 1.0
        reads += 1
        publish(folder)
        save_trainer(filled(language_model(), 0.0), folder)
    assert calls > 15
    assert reads > 0


WRITER = """
    import sys, time
    import ember_ml
    from ember_ml import ops
    from ember_ml.nn import layers, Sequential

    ember_ml.set_backend("numpy")
    folder, seed, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    model = Sequential(*[layers.Dense(32, 32) for _ in range(4)])
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += 1
        for parameter in model.parameters():
            parameter.assign(ops.full(parameter.shape, seed + count))
        ember_ml.save(model, folder)
    print(count)
"""


def test_two_processes_save_to_one_folder(tmp_path: Path) -> None:
    script = tmp_path / "writer.py"
    script.write_text(textwrap.dedent(WRITER))
    folder, seconds = tmp_path / "run", amount(1, 300)
    ember_ml.save(nn.Sequential(layers.Dense(2, 2)), folder)
    words = [sys.executable, str(script), str(folder)]
    writers = [
        subprocess.Popen(
            [*words, str(seed * 10**6), str(seconds)], stdout=subprocess.PIPE, text=True
        )
        for seed in (1, 2)
    ]
    loads = 0
    while any(writer.poll() is None for writer in writers):
        state = ember_ml.load(folder).state_dict()
        if len(state) == 8:
            assert len({float(x.numpy().flat[0]) for x in state.values()}) == 1
        loads += 1
        time.sleep(0.005 if not FULL else 0.05)
    counts = [int(writer.communicate()[0]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert min(*counts, loads) > 3
    assert names(folder) == MODEL_FILES


def test_two_threads_save_to_one_folder(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def write(value: float) -> None:
        try:
            with use_backend("numpy"):
                model = filled(layers.Dense(8, 8), value)
                for _ in range(amount(10, 300)):
                    ember_ml.save(model, tmp_path / "run")
                    weight = ember_ml.load(tmp_path / "run").weight.numpy()
                    assert len(set(weight.flat)) == 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(float(value),)) for value in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert names(tmp_path / "run") == MODEL_FILES


@pytest.mark.parametrize("name", sorted(MODEL_FILES))
def test_flipped_bits_are_detected(name: str, tmp_path: Path) -> None:
    model = filled(layers.Dense(8, 8), 1.0)
    ember_ml.save(model, tmp_path)
    content = (tmp_path / name).read_bytes()
    rng = random.Random(name)
    for _ in range(amount(60, 3000)):
        damaged = bytearray(content)
        at = rng.randrange(8 * len(content))
        damaged[at // 8] ^= 1 << at % 8
        (tmp_path / name).write_bytes(bytes(damaged))
        into = filled(layers.Dense(8, 8), 5.0)
        try:
            ember_ml.load(tmp_path, into=into)
        except (CheckpointError, StateDictError):
            assert (into.weight == 5.0).all()
        else:  # a space became another space in the list of checksums
            assert name == "checksums.json"
            assert (into.weight == 1.0).all()
    (tmp_path / "checksums.json").unlink(missing_ok=True)
    (tmp_path / name).write_bytes(content)
    ember_ml.load(tmp_path)


def test_an_edited_config_says_how_to_load_it(tmp_path: Path) -> None:
    ember_ml.save(layers.Dense(2, 2), tmp_path)
    about = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**about, "note": "edited"}))
    with pytest.raises(CheckpointError, match=r"config.json.*delete checksums.json"):
        ember_ml.load(tmp_path)
    (tmp_path / "checksums.json").unlink()
    ember_ml.load(tmp_path)


def test_a_linked_file_keeps_its_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_atomically(tmp_path / "link.txt", b"new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_lock_is_that_of_the_folder_with_the_name(tmp_path: Path) -> None:
    """A writer that waits for a folder, which is replaced meanwhile, locks the new folder."""
    path, acquired, done = tmp_path / "run", threading.Event(), threading.Event()
    path.mkdir()

    def wait() -> None:
        with locks.held(path):
            acquired.set()
            done.wait(60)

    waiting = threading.Thread(target=wait)
    with locks.held(path):
        waiting.start()
        time.sleep(0.1)
        path.rename(tmp_path / "old")
        path.mkdir()
    assert acquired.wait(60)
    try:
        with pytest.raises(TimeoutError, match="is in use"), locks.held(path, wait=0.0):
            pass
    finally:
        done.set()
        waiting.join()
