"""`ember train`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import ember_ml
from ember_ml import ops
from ember_ml.configs import ConfigError
from ember_ml.configs.train_run import TrainRunConfig
from ember_ml.mad import task
from ember_ml.nn.models import LanguageModel
from ember_ml.training import Trainer
from tests.unit.cli.commands import ember, ember_json, running

EXAMPLES = Path(__file__).parents[3] / "examples" / "training"
SIZES = {"vocab_size": 6, "seq_len": 8, "num_train": 32, "num_validation": 8, "num_test": 8}
RUN = """
model: {type: language_model, layers: gru swiglu, hidden_size: 8}
data: {type: in-context-recall, vocab_size: 6, seq_len: 8, num_train: 32, num_validation: 8,
       num_test: 8}
trainer: {learning_rate: 1e-2, metrics: [accuracy], seed: 3}
batch_size: 8
epochs: 2
"""
ARRAYS = """
model: {type: layers/mlp, in_features: 4, hidden_features: [8], out_features: 2}
data: {arrays: {path: data.npz}}
trainer: {loss: cross_entropy, learning_rate: 1e-2, metrics: [accuracy]}
epochs: 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(RUN)
    (tmp_path / "arrays.yaml").write_text(ARRAYS)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 4)).astype("float32")
    arrays = {"inputs": x, "targets": (x.sum(axis=1) > 0).astype("int64")}
    np.savez(tmp_path / "data.npz", **arrays)
    safetensors.numpy.save_file(arrays, tmp_path / "data.safetensors")
    return tmp_path


def test_it_trains_as_by_hand(folder, backend):
    found = ember_json("train", "run.yaml", "out=out")
    data = task("in-context-recall", **SIZES)
    ops.random.set_seed(3)
    model = LanguageModel("gru swiglu", 6, 8)
    trainer = Trainer(
        model, "cross_entropy", learning_rate=1e-2, metrics=["accuracy"], seed=3, progress=False
    )
    trainer.fit(data.train, data.validation, epochs=2, batch_size=8)
    by_hand = trainer.evaluate(data.validation, batch_size=8)
    assert found["step"] == trainer.step == 8
    assert found["loss"] == trainer.history.epochs[-1]["loss"]
    assert found["val_loss"] == by_hand["loss"]
    assert found["val_accuracy"] == by_hand["accuracy"]
    loaded = ember_ml.load(found["checkpoint"])
    x = ops.asarray(data.arrays("test")[0][:2])
    assert np.array_equal(loaded(x).numpy(), model.eval()(x).numpy())


def test_going_on_is_the_same_as_never_stopping(folder):
    whole = ember_json("train", "run.yaml", "epochs=3", "out=whole", "--backend", "numpy")
    ember("train", "run.yaml", "steps=6", "out=parts", "epochs=3", "--backend", "numpy")
    parts = ember_json(
        "train", "run.yaml", "epochs=3", "out=parts", "--resume", "--backend", "numpy"
    )
    assert {**parts, "checkpoint": ""} == {**whole, "checkpoint": ""}
    assert Path("parts/log.csv").read_text().count("\n") == 4


def test_a_training_in_the_way(folder):
    words = ("train", "run.yaml", "epochs=1", "out=out", "--backend", "numpy")
    ember(*words)
    assert "already contains a training run" in ember(*words, code=2).stderr
    both = ember(*words, "--resume", "--overwrite", code=2).stderr
    assert "pass --resume or --overwrite, not both" in both
    assert ember_json(*words, "--overwrite")["step"] == 4
    assert ember_json(*words, "--resume")["step"] == 4


def test_the_seed_and_the_changes(folder):
    words = ("train", "run.yaml", "epochs=1", "trainer.optimizer.type=sgd", "--backend", "numpy")
    first = ember_json(*words, "out=a", "--seed", "1")
    again = ember_json("--seed", "1", *words, "out=b")
    other = ember_json(*words, "out=c", "--seed", "2")
    assert first["loss"] == again["loss"] != other["loss"]
    written = TrainRunConfig.load("a/train.yaml")
    assert written.trainer.seed == 1
    assert written.trainer.optimizer.component == "optimizers/sgd"
    assert written == TrainRunConfig.from_yaml(written.to_yaml())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_says_how_to_go_on(folder, number, code):
    words = ("train", "run.yaml", "epochs=1000000", "out=out", "--backend", "numpy")
    with running(*words) as process:
        while not process.stdout.readline().startswith("epoch 1 "):
            assert process.poll() is None
        os.killpg(process.pid, number)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == code, stderr
    assert (
        stderr
        == "continue with: ember train run.yaml epochs=1000000 out=out --backend numpy --resume\n"
    )
    found = ember_json("train", "run.yaml", "epochs=1", "out=out", "--resume")
    assert found["step"] >= 4


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_arrays(folder, suffix):
    words = ("train", "arrays.yaml", f"data.arrays.path=data.{suffix}", "--backend", "numpy")
    found = ember_json(*words, f"out={suffix}")
    assert found["step"] == 6  # 36 of 40 examples in batches of 32
    assert set(found) == {"step", "epoch", "loss", "val_loss", "val_accuracy", "checkpoint"}
    with_file = ember_json(*words, "out=file", f"validation=data.{suffix}")
    assert with_file["step"] == 6  # all 40
    assert "val_loss" in with_file
    assert "val_loss" not in ember_json(*words, "out=none", "validation=0")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("data.arrays.path=none.npz", "data.arrays.path: there is no file none.npz"),
        ("data.arrays.path=run.yaml", "must be an .npz or a .safetensors file"),
        ("data.arrays.inputs=input", "no array 'input'; did you mean 'inputs'?"),
        ("data.arrays.pth=x", "data.arrays.pth: there is no such key; did you mean 'path'?"),
        (
            "model.in_featurs=3",
            "model.in_featurs: there is no such key; did you mean 'in_features'",
        ),
        ("model.type=languge_model", "model.type: no models named 'languge_model'; did you mean"),
        ("trainer.learning_rate=-1", "trainer.learning_rate: should be greater than 0, not -1"),
        ("trainer.optimizer.type=adamm", "trainer.optimizer.type: no optimizers named 'adamm'"),
        ("epocs=3", "epocs: there is no such key; did you mean 'epochs'"),
        ("epochs=0", "epochs: should be greater than or equal to 1, not 0 (line 5)"),
        ("validation=1.5", "validation"),
        ("epochs", "a change must be key=value, not 'epochs'"),
    ],
)
def test_errors_name_the_key(folder, change, message):
    result = ember("train", "arrays.yaml", change, "--backend", "numpy", code=2)
    assert message in result.stderr
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: {type: recall}", "model: is missing"),
        ("model: lm", "data: is missing"),
        ("model: {layers: gru}\ndata: recall", "model.type: is missing (line 1)"),
        ("model: {type: lm, layers: gru}\ndata: {txt: {path: x}}", "did you mean 'text'"),
        (
            "model: {type: lm, layers: gru}\ndata: {text: {level: char}}",
            "data.text.path: is missing",
        ),
        (
            "model: {type: lm, layers: gur}\ndata: recall",
            "model.layers.0: no layer or block named 'gur'",
        ),
        ("model: {type: lm, layers: gru, vocab_size: 2}\ndata: recall", "must be at least 16"),
        (
            "model: {type: lm, layers: gru}\ndata: recall\nvalidation: x.txt",
            "tasks have their own split",
        ),
        ("model: 3\ndata: recall", "model: must be a mapping, not 3"),
    ],
)
def test_errors_of_files(folder, text, message):
    Path("bad.yaml").write_text(text)
    result = ember("train", "bad.yaml", "--backend", "numpy", code=2)
    assert message in result.stderr


def test_a_file_may_leave_to_the_changes_what_it_needs(folder):
    Path("open.yaml").write_text("model: {type: lm, layers: gru}\ndata: {text: {level: char}}\n")
    with pytest.raises(ConfigError, match=r"data\.text\.path: is missing \(line 2\)"):
        TrainRunConfig.load("open.yaml")
    assert TrainRunConfig.load("open.yaml", ["data.text.path=x.txt"]).data.text.path == "x.txt"


def test_the_example_of_a_task_trains(folder):
    words = (
        "epochs=1",
        "trainer.schedule.warmup_steps=1",
        "data.num_train=64",
        "model.hidden_size=8",
        "--backend",
        "numpy",
    )
    found = ember_json("train", EXAMPLES / "train.yaml", *words)
    assert found["step"] == 2
    assert found["checkpoint"] == "runs/recall/last"
