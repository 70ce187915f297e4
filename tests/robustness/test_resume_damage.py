"""A refused resume changes nothing, whatever is wrong with the training state."""

from __future__ import annotations

import copy
import json
import random
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from ember_ml import nn, ops
from ember_ml._core.errors import EmberError
from ember_ml.backend import use_backend
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Checkpoint, EarlyStopping
from tests.robustness.scale import amount

X = np.random.default_rng(0).standard_normal((24, 3)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def trainer(folder: Path, seed: int) -> Trainer:
    ops.random.set_seed(seed)
    model = nn.Sequential(nn.layers.Dense(3, 4), nn.layers.BatchNorm(4), nn.layers.Dense(4, 1))
    return Trainer(
        model,
        "mse",
        optimizer="schedule_free_adamw",
        schedule={"type": "plateau"},
        ema=0.9,
        accumulate=2,
        seed=seed,
        callbacks=[Checkpoint(folder, monitor="loss", keep=1), EarlyStopping("loss")],
        progress=False,
    )


def everything(trainer: Trainer) -> str:
    """Return all that a resume may change, bit for bit."""

    def plain(value: Any) -> Any:
        if hasattr(value, "numpy"):
            array = np.asarray(value.numpy())
            return [str(array.dtype), array.shape, array.tobytes().hex()]
        return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)

    state = {
        "model": trainer.model.state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
        "ema": trainer.ema.state_dict(),
        "schedule": trainer.schedule.state_dict(),
        "callbacks": [each.state_dict() for each in trainer.callbacks],
        "history": [list(trainer.history.all_steps()), list(trainer.history.all_epochs())],
        "position": [trainer.step, trainer.epoch, trainer.loader_state, trainer.skipped],
        "start": [trainer.start, trainer.resumed_start],
        "group": [trainer._runner.group.state_dict(), trainer._runner.tensors()],
        "random": ops.random.get_state(),
    }
    return json.dumps(state, default=plain, sort_keys=True)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    with use_backend("numpy"):
        trainer(folder, 1).fit((X, Y), epochs=3, batch_size=8)
    return folder / "last"


@pytest.fixture
def copied(checkpoint: Path, tmp_path: Path) -> Path:
    """Return a copy without checksums, which would detect any damage before anything else."""
    shutil.copytree(checkpoint, tmp_path / "copy")
    (tmp_path / "copy" / "checksums.json").unlink()
    return tmp_path / "copy"


@pytest.fixture
def target(tmp_path: Path, backend: str) -> Trainer:
    fresh = trainer(tmp_path, 2)
    fresh.fit((X, Y), steps=2, batch_size=8)
    fresh.train_step((ops.asarray(X[:8]), ops.asarray(Y[:8])))  # the first half of a step
    return fresh


VALUES = [None, True, -1, 10**30, 1.5, float("nan"), "", "text", [], [1], {}, {"a": 1}]


def paths(data: object, prefix: tuple = ()) -> list[tuple]:
    """Return the paths of all values in nested lists and dicts."""
    found = [prefix] if prefix else []
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items if isinstance(data, (dict, list)) else ():
        found += paths(value, (*prefix, key)) if isinstance(value, (dict, list)) else []
        found += [] if isinstance(value, (dict, list)) else [(*prefix, key)]
    return found


def mutated(data: dict[str, Any], rng: random.Random) -> tuple[str, dict[str, Any]]:
    """Return the data with a value removed, replaced or added, and what was done."""
    data = copy.deepcopy(data)
    *above, key = rng.choice(paths(data))
    parent: Any = data
    for each in above:
        parent = parent[each]
    action = rng.choice(["remove", "replace", "replace", "add"])
    if action == "remove":
        del parent[key]
    elif action == "replace":
        parent[key] = rng.choice(VALUES)
    elif isinstance(parent, dict):
        parent["unknown"] = rng.choice(VALUES)
    else:
        parent.append(rng.choice(VALUES))
    return f"{action} {[*above, key]}", data


def refused_unchanged(target: Trainer, path: Path, what: str) -> bool:
    """Resume; return whether it was refused, after checking that nothing changed."""
    before = everything(target)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.resume(path)
    except EmberError:
        assert everything(target) == before, what
        return True
    return False


def test_a_resume_that_is_refused_at_its_end_changes_nothing(copied: Path, target: Trainer) -> None:
    file = copied / "training.json"
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "random": {}, "skipped": 5}))
    assert target._runner.group.count == 1
    assert refused_unchanged(target, copied, "random")


def test_damaged_training_json(copied: Path, target: Trainer) -> None:
    file = copied / "training.json"
    data = json.loads(file.read_text())
    rng = random.Random(0)
    refused = 0
    for _ in range(amount(100, 5000)):
        what, damaged = mutated(data, rng)
        file.write_text(json.dumps(damaged))
        refused += refused_unchanged(target, copied, what)
    assert refused > amount(30, 2000)
    file.write_text(json.dumps(data))
    target.resume(copied)


def test_damaged_training_tensors(copied: Path, target: Trainer) -> None:
    file = copied / "training.safetensors"
    arrays = safetensors.numpy.load_file(file)
    rng = random.Random(0)
    refused = 0
    for _ in range(amount(30, 2500)):
        damaged = dict(arrays)
        name = rng.choice(sorted(damaged))
        action = rng.choice(["remove", "rename", "shape", "dtype"])
        value = damaged.pop(name)
        if action == "rename":
            damaged[name + "x"] = value
        elif action == "shape":
            damaged[name] = np.zeros((*value.shape, 2), value.dtype)
        elif action == "dtype":
            damaged[name] = value.astype(rng.choice(["int8", "float64", "bool"]))
        safetensors.numpy.save_file(damaged, file)
        refused += refused_unchanged(target, copied, f"{action} {name}")
    assert refused > amount(5, 600)


@pytest.mark.parametrize(
    "name", ["training.json", "training.safetensors", "model.safetensors", "history.jsonl"]
)
def test_damaged_bytes(name: str, checkpoint: Path, tmp_path: Path, target: Trainer) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(checkpoint, folder)
    content = (folder / name).read_bytes()
    rng = random.Random(name)
    for _ in range(amount(20, 1000)):
        damaged = bytearray(content)
        at = rng.randrange(len(content))
        if rng.random() < 0.5:
            damaged[at] ^= 1 << rng.randrange(8)
        else:
            del damaged[at : at + rng.randrange(1, 9)]
        (folder / name).write_bytes(bytes(damaged))
        assert refused_unchanged(target, folder, f"{name} at {at}")


@pytest.mark.parametrize(
    "key", ["step", "epoch", "optimizer", "schedule", "loader", "random", "history", "callbacks"]
)
def test_a_missing_key_is_named(key: str, copied: Path, target: Trainer) -> None:
    file = copied / "training.json"
    data = json.loads(file.read_text())
    del data[key]
    file.write_text(json.dumps(data))
    with pytest.raises(CheckpointError, match=rf"training\.json: the key '{key}' is missing"):
        target.resume(copied)


def test_a_callback_that_fails_halfway_is_undone(copied: Path, target: Trainer) -> None:
    class Failing(EarlyStopping):
        def load_state_dict(self, state: dict[str, Any]) -> None:
            super().load_state_dict(state)
            if self.fails:
                raise RuntimeError("it failed")

    Failing.__name__ = "EarlyStopping"
    target.callbacks = [target.callbacks[0], Failing("loss")]
    target.callbacks[1].fails = True
    assert refused_unchanged(target, copied, "a failing callback")
    target.callbacks[1].fails = False
    target.resume(copied)
