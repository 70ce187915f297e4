"""Pipes, devices, sockets, links and folders where a save has its files."""

from __future__ import annotations

import os
import signal
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml._core.errors import EmberError
from ember_ml.backend import use_backend
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Checkpoint

X = np.random.default_rng(0).standard_normal((8, 3)).astype("float32")
Y = X.sum(axis=1, keepdims=True)
FILES = [
    "checksums.json",
    "config.json",
    "history.jsonl",
    "model.safetensors",
    "training.json",
    "training.safetensors",
]
SECONDS = 20
"""Time after which a call counts as blocked."""


def bind(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the address of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": bind,
    "device": lambda path: path.symlink_to("/dev/tty"),
    "loop": lambda path: path.symlink_to(path.name),
    "broken": lambda path: path.symlink_to("nowhere"),
    "folder": Path.mkdir,
}


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    with use_backend("numpy"):
        yield


@pytest.fixture(autouse=True)
def not_blocked() -> Iterator[None]:
    """Fail instead of waiting forever."""

    def fail(*_: object) -> None:
        pytest.fail("the call blocks")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def trained(*callbacks: Checkpoint) -> Trainer:
    ops.random.set_seed(1)
    ours = Trainer(nn.layers.Dense(3, 1), "mse", seed=1, callbacks=callbacks, progress=False)
    ours.fit((X, Y), steps=2, batch_size=4)
    return ours


def kinds_of(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IFMT(path.lstat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_a_save_leaves_what_no_save_wrote(name: str, kind: str, tmp_path: Path) -> None:
    KINDS[kind](tmp_path / name)
    before = kinds_of(tmp_path)
    with pytest.raises(CheckpointError, match=f"{name} was not written by a save"):
        trained().save(tmp_path)
    assert kinds_of(tmp_path) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_with_a_special_file_is_refused_or_complete(
    name: str, kind: str, tmp_path: Path
) -> None:
    saved = trained()
    saved.save(tmp_path)
    (tmp_path / name).unlink()
    KINDS[kind](tmp_path / name)
    other = trained()
    other.fit((X, Y), steps=1, batch_size=4)
    before = [parameter.numpy().tolist() for parameter in other.model.parameters()]
    if (name, kind) == ("history.jsonl", "broken"):
        with pytest.warns(UserWarning, match="is missing"):
            other.resume(tmp_path)
    elif (name, kind) == ("checksums.json", "broken"):  # as in checkpoints without checksums
        other.resume(tmp_path)
    else:
        with pytest.raises(CheckpointError, match=name):
            other.resume(tmp_path)
        assert [parameter.numpy().tolist() for parameter in other.model.parameters()] == before
        return
    assert other.step == 2


@pytest.mark.parametrize("kind", ["pipe", "socket", "loop", "broken"])
def test_a_save_does_not_wait_for_a_pipe(kind: str, tmp_path: Path) -> None:
    saved = trained()
    saved.save(tmp_path)
    for name in ("checksums.json", "training.json", "history.jsonl"):
        (tmp_path / name).unlink()
        KINDS[kind](tmp_path / name)
        try:
            saved.save(tmp_path)
        except OSError as error:
            assert name in str(error)  # noqa: PT017 (saving is right too)
            (tmp_path / name).unlink()
            saved.save(tmp_path)
        assert trained().resume(tmp_path).step == 2


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
def test_a_file_in_the_place_of_a_committed_save_is_named(kind: str, tmp_path: Path) -> None:
    (tmp_path / "last").mkdir()
    KINDS[kind](tmp_path / "last" / ".ember-save")
    with pytest.raises(CheckpointError, match="ember-save was not written by a save"):
        trained().save(tmp_path / "last")
    with pytest.raises(EmberError, match="ember-save was not written by a save"):
        trained(Checkpoint(tmp_path))
    assert list(kinds_of(tmp_path / "last")) == [".ember-save"]


def test_a_link_to_another_checkpoint_is_not_a_committed_save(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    trained().save(mine)
    longer = trained()
    longer.fit((X, Y), steps=3, batch_size=4)
    longer.save(other)
    (mine / ".ember-save").symlink_to(other)
    before = kinds_of(other)
    assert trained().resume(mine).step == 2
    with pytest.raises(CheckpointError, match="ember-save was not written by a save"):
        trained().save(mine)
    assert kinds_of(other) == before
    assert trained().resume(other).step == 5


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """Yield a folder of a user who is not root, whom permissions do not concern."""
    with tempfile.TemporaryDirectory() as folder:
        trained().save(Path(folder) / "root")  # imports what that user may not be able to read
        trained().resume(Path(folder) / "root")
        is_root = os.geteuid() == 0
        if is_root:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            if is_root:
                os.seteuid(0)


NOBODY = 65534


@pytest.mark.parametrize("mode", [0o444, 0o000], ids=oct)
def test_files_without_permissions_are_replaced(mode: int, unprivileged: Path) -> None:
    ours = trained()
    ours.save(unprivileged / "run")
    for path in (unprivileged / "run").iterdir():
        path.chmod(mode)
    (unprivileged / "run" / "checksums.json").chmod(0o644)  # which says what a save wrote
    ours.save(unprivileged / "other")
    for steps in (4, 6):
        ours.fit((X, Y), until_step=steps, batch_size=4)
        for name in ("run", "other"):
            ours.save(unprivileged / name)
            again = trained().resume(unprivileged / name)
            assert again.step == steps
            assert again.history.losses == ours.history.losses
