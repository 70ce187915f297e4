"""Checkpoints that several processes write: any number of processes, any strategy, any backend."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ember_ml
from ember_ml.backend import available
from ember_ml.nn.checkpoint import CheckpointError
from tests.backends import with_dtype
from tests.distributed import tasks
from tests.distributed.test_strategies import assert_equal_training
from tests.robustness.scale import spread

PATTERN = [{"type": "attention", "num_heads": 4}, "swiglu", "mamba", "swiglu"]
OPTIONS = {"optimizer": "adamw", "learning_rate": 0.01, "ema": 0.9}
SAVED = {"type": "mesh", "mesh": {"fsdp": 2, "tp": 2}}
TASKS = "tests.distributed.tasks:"


@pytest.fixture(scope="module")
def saved(pools, tmp_path_factory) -> Path:
    """Return a checkpoint of four processes after two steps."""
    folder = tmp_path_factory.mktemp("sharded") / "checkpoint"
    pools(4).run(
        f"{TASKS}train_and_save", pattern=PATTERN, folder=str(folder), strategy=SAVED, **OPTIONS
    )
    return folder


@pytest.fixture(scope="module")
def expected() -> dict:
    """Return the run of one process that was never interrupted."""
    return tasks.alone("train", pattern=PATTERN, **OPTIONS)


def test_each_process_writes_some_of_the_tensors(saved: Path) -> None:
    for kind in ("model", "training"):
        files = sorted(path.name for path in saved.glob(f"{kind}-*.safetensors"))
        assert files == [f"{kind}-{at:05d}-of-00004.safetensors" for at in range(1, 5)]
        index = json.loads((saved / f"{kind}.safetensors.index.json").read_text())
        assert set(index["weight_map"].values()) == set(files)
        sizes = [(saved / name).stat().st_size for name in files]
        assert max(sizes) < 2 * min(sizes)
        assert sum(sizes) > index["metadata"]["total_size"] > 0
    assert not (saved / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("number", "strategy"),
    [
        (1, None),
        (2, "fsdp"),
        (2, "dp"),
        (2, "pp"),
        (2, "tp"),
        (4, {"type": "mesh", "mesh": {"fsdp": 4}}),
        (4, SAVED),
    ],
    ids=str,
)
def test_a_run_continues_with_any_strategy(pools, saved, expected, number, strategy) -> None:
    arguments = {"pattern": PATTERN, "folder": str(saved), **OPTIONS}
    if number == 1:
        results = [tasks.alone("resume", **arguments)]
    else:
        results = pools(number).run(f"{TASKS}resume", strategy=strategy, **arguments)
    assert_equal_training(results, expected)


def test_a_run_continues_on_any_backend(pools, tmp_path: Path) -> None:
    arguments = {"pattern": PATTERN[:2], "folder": str(tmp_path / "saved"), **OPTIONS}
    pools(4).run(f"{TASKS}train_and_save", strategy=SAVED, dtype="float32", **arguments)
    results = [
        tasks.alone("resume", backend=backend, dtype="float32", **arguments)
        for backend in available()
    ]
    expected = tasks.alone("train", pattern=PATTERN[:2], dtype="float32", **OPTIONS)
    assert_equal_training(results, expected, 1e-4)


WIDE = {"pattern": ["swiglu", "swiglu"], "dtype": "float32", "hidden_size": 64}
WIDE |= {"optimizer": {"type": "adamw", "state_bits": 8}, "learning_rate": 0.01}
"""A model with parameters that are large enough for a state in 8 bits."""


@pytest.mark.parametrize("strategy", spread(["fsdp", "tp", "pp"], 3))
def test_state_in_8_bits(pools, tmp_path: Path, strategy: str) -> None:
    expected = tasks.alone("train", **WIDE)
    never = pools(2).run(f"{TASKS}train", strategy=strategy, **WIDE)
    # other blocks have other scales, so the state is rounded in another way
    assert_equal_training(never, expected, 0.01)
    folder = {"folder": str(tmp_path / "saved")}
    pools(2).run(f"{TASKS}train_and_save", strategy=strategy, **folder, **WIDE)
    again = pools(2).run(f"{TASKS}resume", strategy=strategy, **folder, **WIDE)
    assert_equal_training(again, never[0], 0.0)
    assert_equal_training([tasks.alone("resume", **folder, **WIDE)], expected, 0.01)
    tasks.alone("train_and_save", **WIDE, **folder)
    assert_equal_training(
        pools(2).run(f"{TASKS}resume", strategy=strategy, **folder, **WIDE), expected, 0.01
    )


@pytest.mark.parametrize("backend", with_dtype("float64"))
def test_load_returns_a_plain_model(saved, expected, backend: str) -> None:
    with ember_ml.use_backend(backend):
        model = ember_ml.load(saved)
        tokens = ember_ml.ops.ones((1, 4), dtype="int64")
        assert model(tokens).shape == (1, 4, tasks.VOCABULARY)
    shapes = {name: list(x.shape) for name, x in model.named_parameters()}
    assert shapes == expected["shapes"]


def test_a_missing_file_is_named(saved: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    copied.mkdir()
    for path in saved.iterdir():
        if path.name != "model-00002-of-00004.safetensors":
            (copied / path.name).write_bytes(path.read_bytes())
    with pytest.raises(CheckpointError, match=r"has no model-00002-of-00004.safetensors, which"):
        ember_ml.load(copied)


def test_a_damaged_file_is_named(saved: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    copied.mkdir()
    for path in saved.iterdir():
        (copied / path.name).write_bytes(path.read_bytes())
    damaged = copied / "model-00003-of-00004.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model-00003-of-00004.safetensors is damaged"):
        ember_ml.load(copied)


def test_an_index_that_does_not_fit_is_refused(saved: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    copied.mkdir()
    for path in saved.iterdir():
        if path.name != "checksums.json":
            (copied / path.name).write_bytes(path.read_bytes())
    index = copied / "model.safetensors.index.json"
    data = json.loads(index.read_text())
    data["weight_map"].popitem()
    index.write_text(json.dumps(data))
    with pytest.raises(CheckpointError, match="does not fit the files that it lists"):
        ember_ml.load(copied)
    index.write_text(json.dumps({"weight_map": {"x": "../model.safetensors"}}))
    with pytest.raises(CheckpointError, match="name of a file in the folder"):
        ember_ml.load(copied)


def test_a_whole_checkpoint_replaces_a_divided_one(pools, saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "both"
    arguments = {"pattern": "attention", "folder": str(folder), "steps": 1}
    pools(2).run(f"{TASKS}train_and_save", strategy="fsdp", **arguments)
    divided = ember_ml.load(folder)
    pools(2).run(f"{TASKS}train_and_save", strategy="dp", **arguments)
    assert (folder / "model.safetensors").exists()
    assert not list(folder.glob("*-of-*"))
    for (name, x), (_, y) in zip(
        divided.named_parameters(), ember_ml.load(folder).named_parameters(), strict=True
    ):
        np.testing.assert_allclose(x.numpy(), y.numpy(), atol=1e-8, err_msg=name)
