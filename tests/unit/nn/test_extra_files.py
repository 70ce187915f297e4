"""Files that modules save next to their values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml._core import checksums
from ember_ml.backend import available
from ember_ml.nn import layers
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.registry import register
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Checkpoint


class Words(nn.Module):
    """Module with a list of words and a parameter."""

    def __init__(self, words: tuple[str, ...] = (), name: str = "words.txt") -> None:
        self.words = tuple(words)
        self.file = name
        self.scale = nn.Parameter([1.0, 2.0])

    def forward(self, x):
        return self.scale * x

    def extra_files(self) -> dict[str, bytes]:
        return {self.file: " ".join(self.words).encode()} if self.words else {}

    def load_extra_files(self, files: Mapping[str, bytes]) -> None:
        self.words = tuple(files[self.file].decode().split()) if files else ()


class Both(nn.Module):
    """Module with two modules that have files, and a renamed value."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        self.parts = {"a/b": first, "a_b": second}

    def forward(self, x):
        return self.parts["a_b"](self.parts["a/b"](x))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def registered(scratch_registry: None) -> type[Words]:
    return register("layers/words")(type("Registered", (Words,), {}))


def test_files_move_between_all_backends(
    backend: str, registered: type[Words], tmp_path: Path
) -> None:
    model = nn.Sequential(layers.Dense(2, 2), registered())
    model[1].words = ("one", "zwei", "три")
    ember_ml.save(model, tmp_path)
    assert names(tmp_path) == {
        "checksums.json", "config.json", "model.safetensors", "1.words.txt"
    }  # fmt: skip
    assert (tmp_path / "1.words.txt").read_text("utf-8") == "one zwei три"
    for other in available():
        loaded = ember_ml.load(tmp_path, backend=other)
        assert loaded[1].words == ("one", "zwei", "три")
        assert loaded[1].scale.backend == other


def test_modules_of_any_name_keep_their_files_apart(on_numpy: None, tmp_path: Path) -> None:
    ember_ml.save(Both(Words(["x"]), Words(["y", "z"])), tmp_path)
    model = Both(Words(), Words(["old"]))
    ember_ml.load(tmp_path, into=model)
    assert [part.words for part in model.parts.values()] == [("x",), ("y", "z")]


def test_a_model_without_files_has_the_same_config_as_before(tmp_path: Path) -> None:
    ember_ml.save(layers.Dense(2, 2), tmp_path)
    assert set(json.loads((tmp_path / "config.json").read_text())) == {
        "format", "ember_ml", "class", "config"
    }  # fmt: skip


def test_a_save_without_files_removes_those_of_the_save_before(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    ember_ml.save(Words(["a"]), tmp_path)
    assert "words.txt" in names(tmp_path)
    ember_ml.save(Words(), tmp_path)
    assert names(tmp_path) == {"checksums.json", "config.json", "model.safetensors", "notes.txt"}
    model = Words(["left"])
    ember_ml.load(tmp_path, into=model)
    assert model.words == ()


def test_a_foreign_file_is_not_overwritten(tmp_path: Path) -> None:
    ember_ml.save(Words(), tmp_path)
    (tmp_path / "words.txt").write_text("mine")
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    with pytest.raises(CheckpointError, match=r"words.txt was not written by a save"):
        ember_ml.save(Words(["a"]), tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_a_foreign_file_is_found_before_training(on_numpy: None, tmp_path: Path) -> None:
    (tmp_path / "last").mkdir()
    (tmp_path / "last" / "words.txt").write_text("mine")
    trainer = Trainer(Words(["a"]), "mse", callbacks=[Checkpoint(tmp_path)], progress=False)
    with pytest.raises(ValueError, match=r"words.txt was not written by a save"):
        trainer.fit(ops.ones((4, 2)), ops.ones((4, 2)), epochs=1)
    assert trainer.step == 0


def test_an_edited_file_is_loaded_and_replaced_without_checksums(tmp_path: Path) -> None:
    ember_ml.save(Words(["a"]), tmp_path)
    (tmp_path / "words.txt").write_text("b c")
    model = Words(["left"])
    with pytest.raises(CheckpointError, match=r"words.txt is damaged.*delete checksums.json"):
        ember_ml.load(tmp_path, into=model)
    assert model.words == ("left",)
    (tmp_path / "checksums.json").unlink()
    assert ember_ml.load(tmp_path, into=model).words == ("b", "c")
    ember_ml.save(model, tmp_path)
    assert "checksums.json" in names(tmp_path)


@pytest.mark.parametrize("damage", ["bit", "short", "missing"])
def test_damage_changes_nothing(damage: str, tmp_path: Path) -> None:
    ember_ml.save(Both(Words(["x"]), Words(["y", "z"])), tmp_path)
    file = next(path for path in tmp_path.iterdir() if path.read_bytes() == b"y z")
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(b"y {" if damage == "bit" else b"y")
    model = Both(Words(["1"]), Words(["2"]))
    model.parts["a_b"].scale.assign([7.0, 7.0])
    with pytest.raises(CheckpointError, match=file.name):
        ember_ml.load(tmp_path, into=model)
    assert [part.words for part in model.parts.values()] == [("1",), ("2",)]
    assert model.parts["a_b"].scale.tolist() == [7.0, 7.0]


class Picky(Words):
    """Module that refuses its files."""

    def load_extra_files(self, files: Mapping[str, bytes]) -> None:
        if files and files[self.file] != " ".join(self.words).encode():
            raise KeyError("not these")


def test_a_module_that_refuses_its_files_leaves_the_model_unchanged(tmp_path: Path) -> None:
    ember_ml.save(Both(Words(["x"]), Words(["y"])), tmp_path)
    model = Both(Words(["1"]), Picky(["2"]))
    model.parts["a/b"].scale.assign([7.0, 7.0])
    with pytest.raises(CheckpointError, match=r"Picky.*cannot load its files \(words.txt\).*these"):
        ember_ml.load(tmp_path, into=model)
    assert [part.words for part in model.parts.values()] == [("1",), ("2",)]
    assert model.parts["a/b"].scale.tolist() == [7.0, 7.0]


class Renaming(Words):
    """Module whose values do not fit."""

    def load_state_dict(self, state, *, strict=True):
        raise ValueError("no value fits")


def test_values_that_do_not_fit_leave_the_files_unchanged(tmp_path: Path) -> None:
    ember_ml.save(Words(["x"]), tmp_path)
    model = Renaming(["1"])
    with pytest.raises(ValueError, match="no value fits"):
        ember_ml.load(tmp_path, into=model)
    assert model.words == ("1",)


@pytest.mark.usefixtures("on_numpy")
def test_a_failed_resume_restores_the_files(tmp_path: Path) -> None:
    def trainer(optimizer: str, *words: str) -> Trainer:
        return Trainer(Words(words), "mse", optimizer=optimizer, progress=False)

    first = trainer("adam", "a", "b")
    first.fit(ops.ones((4, 2)), ops.ones((4, 2)), epochs=1)
    first.save(tmp_path)
    other = trainer("sgd", "c")
    with pytest.raises((CheckpointError, ValueError), match="optimizer"):
        other.resume(tmp_path)
    assert other.model.words == ("c",)
    same = trainer("adam", "c")
    same.resume(tmp_path)
    assert same.model.words == ("a", "b")


@pytest.mark.parametrize("other", [layers.Dense(2, 2), nn.Sequential(Words(["a"]))])
def test_files_that_no_module_takes_are_an_error(other: nn.Module, tmp_path: Path) -> None:
    ember_ml.save(nn.Sequential(nn.Sequential(Words(["a"]))), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "checksums.json").unlink()
    owner = "" if isinstance(other, layers.Dense) else "0.0"
    config["files"] = {"0.0.words.txt": [owner, "words.txt"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    ember_ml.save(other, tmp_path / "values")
    (tmp_path / "model.safetensors").write_bytes(
        (tmp_path / "values" / "model.safetensors").read_bytes()
    )
    with pytest.raises(CheckpointError, match=r"words.txt"):
        ember_ml.load(tmp_path, into=other)


@pytest.mark.parametrize(
    "name", ["../out.txt", "a/b", "", "..", ".ember-save", ".stale.json", "a\\b"]
)
def test_a_name_outside_of_the_folder_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="must be a file name"):
        ember_ml.save(Words(["a"], name), tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", ["config.json", "Model.safetensors", "checksums.json"])
def test_a_name_of_the_checkpoint_itself_is_changed(name: str, tmp_path: Path) -> None:
    ember_ml.save(Words(["a"], name), tmp_path)
    assert ember_ml.load(tmp_path, into=Words((), name)).words == ("a",)


@pytest.mark.parametrize(
    "files",
    [{"../secret": ["", "words.txt"]}, {"words.txt": "words.txt"}, ["words.txt"], {"a": [1, 2]}],
)
def test_a_config_cannot_name_files_outside_of_the_folder(files: object, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    ember_ml.save(Words(["a"]), tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps({**config, "files": files}))
    (tmp_path / "m" / "checksums.json").unlink()
    model = Words(["left"])
    with pytest.raises(CheckpointError, match=r"config.json: files must map"):
        ember_ml.load(tmp_path / "m", into=model)
    assert model.words == ("left",)


def test_checksums_cannot_name_files_outside_of_the_folder(tmp_path: Path) -> None:
    from ember_ml._core.folders import remove_folder
    from ember_ml.nn.checkpoint import KIND

    (tmp_path / "precious").write_text("mine")
    ember_ml.save(Words(["a"]), tmp_path / "m")
    files = {"../precious": b"", "config.json": b""}
    manifest = checksums.manifest("checkpoint", files)
    (tmp_path / "m" / "checksums.json").write_bytes(manifest.to_json())
    remove_folder(tmp_path / "m", KIND)
    ember_ml.save(Words(), tmp_path / "m")
    assert (tmp_path / "precious").read_text() == "mine"
