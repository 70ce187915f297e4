"""`ember examples`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from ember_ml.cli.examples import example_files
from tests.unit.cli.commands import ember, ember_json

ROOT = Path(__file__).parents[3]


def test_all_examples_are_listed_with_a_summary():
    listed = {each["name"]: each["summary"] for each in ember_json("examples")}
    assert {"own_parts.py", "control.py", "training/train.yaml"} <= set(listed)
    assert set(listed) == set(example_files())
    assert all(listed[name] for name in listed if not name.startswith("configs/"))
    assert "own_parts.py" in ember("examples").stdout


def test_a_file_and_a_folder_are_copied(tmp_path):
    copied = ember_json("examples", "own_parts.py", "training", "--out", tmp_path)
    files = ("train.yaml", "train_text.yaml", "tune.yaml")
    names = ["own_parts.py", *(f"training/{name}" for name in files)]
    assert copied == [str(tmp_path / name) for name in names]
    for name in names:
        assert (tmp_path / name).read_text() == (ROOT / "examples" / name).read_text()


def test_a_copied_training_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ember("examples", "all")
    words = ("epochs=1", "model.hidden_size=8", "model.layers=gru", "--backend", "numpy")
    assert ember_json("train", "training/train_text.yaml", *words)["step"] > 0


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "demo.py").write_text("mine")
    result = ember("examples", "control.py", "demo.py", "--out", tmp_path, code=2)
    assert "demo.py exists already; choose another folder with --out" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["demo.py"]
    assert (tmp_path / "demo.py").read_text() == "mine"


def test_an_unknown_example():
    assert "did you mean 'control.py'" in ember("examples", "contrl.py", code=2).stderr
    assert "ember examples" in ember("examples", "zzz", code=2).stderr


def test_the_wheel_contains_the_examples():
    """`tests/typing/check.py` copies them with an installed wheel."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = config["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"examples": "ember_ml/examples"}
