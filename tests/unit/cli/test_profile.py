"""`ember profile`."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from ember_ml.training.profiling import machine
from ember_ml.training.trainer.profiling import StepProfiler
from tests.unit.cli.commands import ember, ember_json

RUN = """
model: {type: language_model, layers: attention swiglu, hidden_size: 16}
data: {type: in_context_recall, vocab_size: 8, seq_len: 16, num_train: 16}
batch_size: 16
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(machine, "SIZES", (32,))
    monkeypatch.setattr(machine, "CALLS", 10)
    path = tmp_path / "run.yaml"
    path.write_text(RUN)
    return path


def test_tables_and_files(run: Path) -> None:
    result = ember("profile", run, "--steps", 2, "--warmup", 1).stdout
    for part in ("Profile of LanguageModel", "of peak", "nn.projection.linear", "Ember's dispatch"):
        assert part in result
    assert result.splitlines()[-2] == f"page   {Path('profile', 'profile.html')}"
    assert sorted(os.listdir("profile")) == ["profile.html", "profile.json", "trace.json"]
    assert sorted(os.listdir()) == ["profile", "run.yaml"]
    trace = json.loads(Path("profile", "trace.json").read_text())
    assert sum(event["name"] == "step" for event in trace["traceEvents"]) == 2


def test_json(run: Path) -> None:
    options = ("--steps", 1, "--warmup", 0, "--output", "out", "trainer.precision=bfloat16")
    found = ember_json("--backend", "torch", "profile", run, "batch_size=4", *options)
    assert found["kind"] == "ember_ml profile"
    assert (found["backend"], found["steps"]) == ("torch", 1)
    assert found["matrix_product"]["dtype"] == "bfloat16"
    assert found["page"] == str(Path("out", "profile.html"))
    linear = next(row for row in found["ops"] if row["name"] == "nn.projection.linear")
    assert linear["calls"] == 5
    assert {row["name"] for row in found["modules"]} >= {"(model)", "backbone.blocks.0", "head"}


def test_ctrl_c_saves_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = StepProfiler.run

    def interrupted(self: StepProfiler, batch: object) -> object:
        signal.raise_signal(signal.SIGINT)
        return measure(self, batch)

    monkeypatch.setattr(StepProfiler, "run", interrupted)
    result = ember("profile", run, code=130)
    assert result.stderr.splitlines()[-1] == "stopped"
    assert "resume" not in result.stdout
    assert os.listdir() == ["run.yaml"]


def test_steps_of_few_batches(run: Path) -> None:
    """An epoch of one batch ends a step of several."""
    options = ("--steps", 1, "--warmup", 0, "trainer.accumulate=4")
    assert ember_json("profile", run, *options)["steps"] == 1


def test_errors(run: Path) -> None:
    assert "steps must be at least 1" in ember("profile", run, "--steps", 0, code=2).stderr
    assert "nothing.yaml" in ember("profile", "nothing.yaml", code=2).stderr
    assert "layers" in ember("profile", run, "model.layers=atention", code=2).stderr
    assert "is a file" in ember("profile", run, "--output", run, code=2).stderr
    Path("trace.json").write_text("mine")
    assert "is not part of a profile" in ember("profile", run, "--output", ".", code=2).stderr
    assert Path("trace.json").read_text() == "mine"
    strategy = ember("profile", run, "trainer.strategy=dp", code=2).stderr
    assert "leave out profile or strategy" in strategy
