"""`ember launch` and `ember_ml.distributed.launch`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ember_ml.backend import available
from ember_ml.distributed import capabilities
from tests.distributed.launching import command, launch, variables
from tests.unit.cli.commands import ember, ember_json

RUN = """
model: {type: layers/mlp, in_features: 4, hidden_features: [4], out_features: 2}
data: {arrays: {path: data.npz}}
trainer: {loss: cross_entropy, learning_rate: 1e-2, metrics: [accuracy], seed: 0, optimizer: sgd}
batch_size: 8
validation: 0.2
epochs: 2
"""
STRATEGIES = {name: capabilities(name)[-2] for name in available() if capabilities(name)}
"""A strategy of each backend that trains in several processes."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(20, 4)).astype("float32")
    np.savez("data.npz", inputs=x, targets=(x.sum(axis=1) > 0).astype("int64"))
    Path("run.yaml").write_text(RUN)
    return tmp_path


@pytest.mark.parametrize("backend", STRATEGIES)
def test_a_launched_run_equals_a_run_in_one_process(folder, backend: str) -> None:
    expected = ember_json("train", "run.yaml", "out=alone", "--backend", backend)
    options = ("--backend", backend, "--nproc", 2, "--strategy", STRATEGIES[backend])
    done = launch(*options, "run.yaml", "out=together", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)  # of the main process alone
    assert done.stderr.count("model  MLP") == 1
    assert done.stderr.count("2 processes") == 1
    for name in ("step", "epoch", "loss", "val_loss", "val_accuracy"):
        assert result[name] == pytest.approx(expected[name], rel=1e-5), name
    rows = [Path(out, "log.csv").read_text().count("\n") for out in ("alone", "together")]
    assert rows[0] == rows[1]


WRONG = [
    (["--backend", "numpy", "run.yaml"], "numpy trains in one process"),
    (["--backend", "mlx", "--max-restarts", "1", "run.yaml"], "does not restart processes"),
    (["--backend", "mlx", "--nnodes", "2", "run.yaml"], "on one machine here; for 2 machines"),
    (["--backend", "torch", "--nnodes", "2", "run.yaml"], "--rdzv-endpoint host:29400"),
    (["--strategy", "fsdp", "script.py"], "--strategy, --seed and --plugin are for YAML files"),
    (["script.py"], "script.py: No such file"),
    (["run.yaml", "trainer.optimiser=sgd"], "did you mean 'optimizer'"),
    (["--strategy", "fspd", "run.yaml"], "did you mean 'fsdp'"),
]


@pytest.mark.parametrize(("words", "message"), WRONG, ids=lambda x: " ".join(x))
def test_wrong_jobs_are_refused_before_a_process_starts(folder, words, message: str) -> None:
    result = ember("launch", *words, code=2)
    assert message in result.stderr
    assert result.stderr.count("error: ") == 1


def test_processes_without_a_strategy_are_refused(folder, monkeypatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = ember("train", "run.yaml", "out=out", code=2)
    assert "torchrun has started 2 processes" in result.stderr
    assert not Path("out").exists()


@pytest.mark.parametrize("option", [[], ["--overwrite"]], ids=str)
def test_a_restarted_run_resumes(folder, monkeypatch, option: list[str]) -> None:
    words = ("train", "run.yaml", "out=out", "--backend", "numpy")
    ember(*words, "steps=3", "checkpoint_every=1")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert "out, from step 3" in ember(*words, *option).stdout


SCRIPT = """
import pathlib, sys, time
from ember_ml.distributed import launch, read_environment
if __name__ == "__main__" and "child" not in sys.argv:
    launch(__file__, 2, ["child"], backend="torch", max_restarts=0)
place = read_environment()
sys.stdout.write(f"{place.rank} of {place.size}: {sys.argv[1:]}\\n")
sys.stdout.flush()
if place.rank == 0:
    pathlib.Path("written").touch()
else:
    while not pathlib.Path("written").exists():  # the launcher ends the first process
        time.sleep(0.05)
    raise ValueError("the second process cannot train")
"""


def test_launch_in_python_shows_the_first_error_once(tmp_path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        command(tmp_path / "script.py"),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=variables(),
        timeout=300,
        check=False,
    )
    assert sorted(done.stdout.splitlines()) == [f"{at} of 2: ['child']" for at in (0, 1)]
    assert done.returncode == 1
    assert done.stderr.count("ValueError: the second process cannot train") == 1
    assert "error: process 1 failed first: Traceback" in done.stderr
    assert "DistributedError: launch:" in done.stderr
