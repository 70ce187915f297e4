"""`ember tune`."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.unit.cli.commands import ember, ember_json, running

SPACE = {"trainer.learning_rate": {"float": [1e-3, 0.3], "log": True}, "batch_size": [8, 16]}
TUNE = {"space": SPACE, "metric": "val_accuracy", "mode": "max", "sampler": "random"}
MODEL = {"type": "layers/dense", "in_features": 4, "out_features": 2}
TRAINER = {"loss": "cross_entropy", "metrics": ["accuracy"], "optimizer": "sgd"}
QUICK = ("--backend", "numpy", "--workers", "1")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(96, 4)).astype(np.float32)
    np.savez("data.npz", inputs=x, targets=(x.sum(axis=1) > 0).astype(np.int64))


def write(name: str = "c.yaml", tune: dict | None = None, **fields) -> str:
    config = {
        "model": MODEL,
        "data": {"arrays": {"path": "data.npz"}},
        "trainer": TRAINER,
        "validation": 0.25,
        "epochs": 2,
        "out": "runs/best",
        "tune": TUNE if tune is None else tune,
        **fields,
    }
    config = {key: value for key, value in config.items() if value is not None}
    Path(name).write_text(yaml.safe_dump(config))
    return name


def trials(folder: str = "runs/tune-c") -> list[dict]:
    return json.loads(Path(folder, "results.json").read_text())["trials"]


def test_search_continue_and_train_the_best(tmp_path) -> None:
    write()
    result = ember("tune", "c.yaml", "--budget", 3, *QUICK)
    assert "tune c: 3 of 3 trials" in result.stdout
    assert "report: runs/tune-c/report.html" in result.stdout
    before = trials()
    assert "3 of 5 trials are over already" in ember("tune", "c.yaml", "--budget", 5, *QUICK).stdout
    found = ember_json("tune", "c.yaml", "--budget", 5, *QUICK)
    after = trials()
    assert after[:3] == before
    assert found["trials"] == {"done": 5, "pruned": 0, "failed": 0}
    best = max(after, key=lambda each: each["scores"]["val_accuracy"])
    assert (found["best"], found["params"]) == (best["id"], best["params"])
    trained = ember_json("train", found["config"], "--backend", "numpy")
    assert trained["val_accuracy"] == best["scores"]["val_accuracy"]
    Path("runs/tune-c/report.html").unlink()
    assert ember("tune", "runs/tune-c").stdout == "report: runs/tune-c/report.html\n"
    again = ember("tune", "runs/tune-c", "--json")
    assert again.stdout == Path("runs/tune-c/results.json").read_text()


def test_pruning_objectives_and_a_shared_history() -> None:
    write()
    words = (
        "tune.pruner={type: asha, reduction_factor: 2}",
        "tune.validate_every=2",
        "tune.metric=val_loss",
        "tune.mode=min",
        "tune.objectives={val_loss: min, parameters: min}",
        "tune.history=shared.jsonl",
    )
    found = ember_json("tune", "c.yaml", *words, "--budget", 5, *QUICK)
    assert found["trials"]["pruned"] > 0
    assert found["scores"]["parameters"] == 10
    assert Path("shared.jsonl").exists()
    write("other.yaml")
    ember("tune", "other.yaml", *words, "--budget", 1, *QUICK)
    tasks = {json.loads(line).get("task") for line in Path("shared.jsonl").read_text().splitlines()}
    assert tasks >= {"c", "other"}
    space = "tune.space={batch_size: [8]}"
    error = ember("tune", "other.yaml", *words, space, "--out", "x", code=2).stderr
    assert "belongs to another search" in error
    assert "trainer.learning_rate is only in the file" in error
    assert not Path("x").exists()


def test_a_pipeline() -> None:
    pipeline = {"type": "training", "model": MODEL, "trainer": TRAINER, "epochs": 2}
    space = {"pipeline.trainer.learning_rate": {"float": [1e-3, 0.3], "log": True}}
    config = {
        "pipeline": pipeline,
        "data": {"arrays": {"path": "data.npz"}},
        "validation": 0.25,
        "out": "runs/best",
        "tune": {**TUNE, "space": space},
    }
    Path("p.yaml").write_text(yaml.safe_dump(config))
    found = ember_json("tune", "p.yaml", "--budget", 2, *QUICK)
    assert found["trials"]["done"] == 2
    run = ember_json("pipeline", "run", found["config"], "--backend", "numpy")
    assert run["val_accuracy"] == found["scores"]["val_accuracy"]


def test_a_population() -> None:
    write(tune={**TUNE, "space": {"trainer.learning_rate": SPACE["trainer.learning_rate"]}})
    words = ("tune", "c.yaml", "epochs=4", "tune.validate_every=5", "--population", 3, *QUICK)
    result = ember(*words, "--out", "p")
    assert "best: member" in result.stdout
    assert "from step 5: trainer.learning_rate" in result.stdout
    found = ember_json(*words, "--out", "p")
    assert len(found["schedule"]) == 3, "12 steps in generations of 5"
    assert found["schedule"] == ember_json(*words, "--out", "q")["schedule"]
    assert Path(found["checkpoint"], "model.safetensors").exists()
    write()
    error = ember(*words, "--out", "r", code=2).stderr
    assert "'batch_size' cannot change during training" in error
    assert not Path("r").exists()


def test_failed_trials() -> None:
    """A learning rate that diverges fails; the search goes on."""
    rates = {"trainer.learning_rate": [1e-2, 1e38, 2e38, 3e38]}
    write(tune={**TUNE, "space": rates, "metric": "val_loss", "mode": "min"})
    result = ember("tune", "c.yaml", "--budget", 4, *QUICK)
    states = [each["state"] for each in trials()]
    assert set(states) == {"done", "failed"}
    assert result.stderr.count("failed: trial") == states.count("failed")
    assert "diverged" in result.stderr
    write(tune={**TUNE, "space": {"model.out_features": [1]}})  # there are two classes
    result = ember("tune", "c.yaml", "--budget", 1, "--out", "none", *QUICK, code=1)
    assert "best:" not in result.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("tune.sampl=random", "sampl: there is no such key; did you mean 'sampler'"),
        ("tune.metric=val_acuracy", "training does not report 'val_acuracy'; did you mean"),
        ("tune.metric=val_f1", "it reports val_loss, val_accuracy"),
        ("tune.objectives={val_accuracy: max, size: min}", "training does not report 'size'"),
        ("tune.objectives={val_loss: min}", "'val_accuracy' must be one of the objectives"),
        ("tune.mode=best", "mode"),
        ("tune.space={}", "space: must map dotted keys to ranges"),
        ("tune.space={trainer.learning_rat: [1, 2]}", "learning_rat: there is no such key"),
        ("tune.space={trainer.learning_rate: {float: [1, 0]}}", "trainer.learning_rate"),
        ("tune.space={trainer.learning_rate: [-1.0]}", "learning_rate"),
        ("tune.sampler=rndom", "no samplers named 'rndom'"),
        ("tune.pruner=ash", "did you mean 'asha'"),
        ("validation=0.0", "a search needs validation data"),
        ("data.arrays.path=other.npz", "other.npz"),
        ("steps=0", "steps"),
    ],
)
def test_errors_before_the_first_trial(change: str, message: str) -> None:
    write()
    result = ember("tune", "c.yaml", change, *QUICK, code=2)
    assert message in result.stderr
    assert not Path("runs").exists()


def test_other_errors() -> None:
    write()
    assert "budget" in ember("tune", "c.yaml", "--budget", 0, code=2).stderr
    assert "workers" in ember("tune", "c.yaml", "--workers", 0, code=2).stderr
    write("plain.yaml", tune={})
    assert "space: is missing" in ember("tune", "plain.yaml", code=2).stderr
    Path("plain.yaml").write_text("model: {type: layers/dense}\n")
    assert "tune: is missing" in ember("tune", "plain.yaml", code=2).stderr
    assert "nowhere.yaml" in ember("tune", "nowhere.yaml", code=2).stderr
    assert "no tune.json" in ember("tune", ".", code=2).stderr
    ray = ("--ray", "127.0.0.1:1", "--backend", "numpy")
    assert "no Ray cluster at 127.0.0.1:1" in ember("tune", "c.yaml", *ray, code=2).stderr
    ember("tune", "c.yaml", "--budget", 1, *QUICK)
    error = ember("tune", "c.yaml", "epochs=3", "--budget", 1, *QUICK, code=2).stderr
    assert "runs/tune-c belongs to another search" in error
    assert "config.epochs is 2, not 3" in error
    out = ("--out", ".")
    assert "is not a search" in ember("tune", "c.yaml", *out, *QUICK, code=2).stderr
    assert "is a file" in ember("tune", "c.yaml", "--out", "c.yaml", *QUICK, code=2).stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_interrupted() -> None:
    write(epochs=2000)
    words = ("tune", "c.yaml", "--budget", 3, *QUICK)
    with running(*words) as process:
        assert process.stdout is not None
        assert "tune c: 0 of 3 trials" in process.stdout.readline()
        while not any("report" in line for line in _lines("runs/tune-c/history.jsonl")):
            assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped: 0 of 3 trials are over" in errors
    assert "continue with: ember" in errors


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
