"""`ember mad`."""

from __future__ import annotations

import io
import json
import math
import os
import re
import signal
import sys

import pytest
from rich.console import Console

from ember_ml.cli.mad_sizes import layout
from ember_ml.mad import SCALES, Store, cells, task
from ember_ml.mad.scales import short_name, task_names
from tests.unit.cli.commands import ember, ember_json, running

TINY = ("--scale", "tiny", "--backend", "numpy", "--workers", "1")


def test_run_report_and_run_again(tmp_path):
    out = tmp_path / "sweep"
    words = ("mad", "run", "gru+swiglu", "--name", "ours=min_gru+swiglu", "--out", out, *TINY)
    words = (*words, "--task", "recall", "--seeds", "2", "--seed", "5")
    result = ember(*words)
    assert f"report: {out / 'report.html'}" in result.stdout
    assert "done already" not in result.stdout
    done = Store(out).done()
    assert {(each.run.architecture, each.run.seed) for each in done} == {
        (name, seed) for name in ("gru+swiglu", "ours") for seed in (5, 6)
    }
    found = ember_json(*words)
    mean = sum(each.result.accuracy for each in done if each.run.architecture == "ours") / 2
    assert found["accuracy"]["ours"]["in-context-recall"] == pytest.approx(mean)
    assert found["done"] == found["runs"] == 4
    scores = cells([each for each in done if each.run.architecture == "ours"])[0]
    assert found["scores"]["ours"]["in-context-recall"] == {
        "accuracy": scores.accuracy.mean,
        "interval": list(scores.accuracy.interval),
        "macro_accuracy": scores.macro_accuracy.mean,
        "macro_interval": list(scores.macro_accuracy.interval),
        "seeds": 2,
    }
    low, high = scores.accuracy.interval
    bounds = f"({math.floor(100 * low)}-{math.ceil(100 * high)})"
    assert f"{100 * mean:.1f} {bounds}" in result.stdout
    assert "unequal sizes: the parameter counts differ" in found["warnings"][0]
    assert found["settings"]["hidden_size"] == 16
    assert "4 of 4 runs are done already" in ember(*words).stdout
    (out / "report.html").unlink()
    ember("mad", "report", out)
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    (out / "results.json").unlink()
    result = ember("mad", "report", out, "--json")
    assert result.stdout == (out / "results.json").read_text()
    assert result.stderr == f"report: {out / 'report.html'}\n"


def test_runs_that_fail_are_listed(fragile, tmp_path):
    words = ("mad", "run", fragile, "--out", tmp_path, *TINY, "--task", "memorization")
    result = ember(*words, code=1)
    assert "failed: memorization.fragile" in result.stderr
    assert "it burst" in result.stderr
    assert f"report: {tmp_path / 'report.html'}" in result.stdout


def test_ctrl_c_keeps_what_is_done(tmp_path):
    words = ("mad", "run", "gru+swiglu", "--seeds", "9", "--out", tmp_path / "s", *TINY)
    with running(*words) as process:
        assert process.stdout.readline().startswith("MAD tiny on numpy: 0 of 54 runs")
        assert "(1 of 54" in process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the workers too
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "continue with: ember mad run gru+swiglu --seeds 9" in stderr
    assert "Traceback" not in stderr
    assert 1 <= len(Store(tmp_path / "s").done()) < 54


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["attention+swigl"], "did you mean 'swiglu'?"),
        (["attention+"], "'+' at 9 must stand between two layers"),
        (["attention", "--scale", "miny"], "did you mean 'tiny' or 'mini'?"),
        (["attention", "--task", "recal"], "did you mean 'recall'?"),
        (["--name", "attention"], "--name must be NAME=PATTERN"),
        ([], "name at least one architecture"),
        (["gru", "--name", "gru=gru"], "gru is named twice"),
    ],
)
def test_errors(words, message, tmp_path):
    result = ember("mad", "run", *words, "--out", tmp_path / "s", "--backend", "numpy", code=2)
    assert message in result.stderr
    assert not (tmp_path / "s").exists()


def test_a_folder_of_another_sweep_is_refused(tmp_path):
    words = ("mad", "run", "gru+swiglu", "--task", "recall", "--out", tmp_path)
    ember(*words, *TINY)
    result = ember(*words, "--scale", "tiny", "--backend", "torch", code=2)
    assert "its backend is 'numpy', not 'torch'" in result.stderr
    assert "done already" not in result.stdout


def test_sizes():
    words = ("mad", "sizes", "mamba+swiglu", "--name", "ours=attention+swiglu", "--task", "recall")
    mamba, ours = ember_json(*words, "--scale", "base")
    assert (mamba["architecture"], mamba["state"]) == ("mamba+swiglu", 2 * 256 * (4 + 3))
    assert (ours["architecture"], ours["state_per_token"]) == ("ours", 512)
    ratio = mamba["parameters"] / ours["parameters"]
    assert f"{ratio:.2f}x" in ember(*words, "--scale", "base").stdout


@pytest.mark.parametrize("width", [10_000, 100, 80, 70, 60, 40, 24])
def test_numbers_of_sizes_are_whole(width):
    rows = [
        ("attention+swiglu", "noisy-in-context-recall", "104,280", "1.00x", "0", "", "256"),
        ("n" * 50, "memorization", "1,388,160", "13.31x", "112,792", "14.00x", ""),
    ]
    console = Console(width=width, file=io.StringIO(), highlight=False)
    for part in layout(rows, width):
        console.print(part)
    text = console.file.getvalue()
    assert max(len(line) for line in text.splitlines()) <= width
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    for row in rows:
        for number in filter(None, row[2:]):
            assert re.search(rf"(?<![\d,]){re.escape(number)}(?![\d,]\d)", text)


def test_architectures_of_other_sizes_are_refused(tmp_path):
    words = ("mad", "run", "mamba+swiglu", "mamba[d_state=16]+swiglu", "--out", tmp_path / "s")
    result = ember(*words, *TINY, "--same-state", "1.5", code=2)
    assert "a factor of" in result.stderr
    assert not (tmp_path / "s").exists()


def test_tasks_show_examples_of_the_test_split():
    found = {each["name"]: each for each in ember_json("mad", "tasks", "--sample", "2")}
    assert list(found) == task_names()
    for name, each in found.items():
        few = {"num_train": 2, "num_validation": 1, "num_test": 2}
        sizes = {key: value for key, value in each["sizes"].items() if key != "type"}
        inputs, targets = task(name, **{**sizes, **few}).arrays("test")
        for at, sample in enumerate(each["samples"]):
            assert sample["inputs"] == inputs[at].tolist()
            shown = [-100 if target is None else target for target in sample["targets"]]
            assert shown == targets[at].tolist()
            assert len(sample["roles"]) == len(sample["inputs"])


def test_roles_of_recall():
    (found,) = ember_json("mad", "tasks", "noisy-recall")
    (sample,) = found["samples"]
    known = {}
    rows = list(zip(sample["inputs"], sample["roles"], strict=True))
    for (key, role), (value, next_role), target in zip(
        rows[::2], [*rows[1::2], (None, "value")], sample["targets"][::2], strict=True
    ):
        if role == "noise":
            assert target is None
            continue
        assert (role, next_role) == ("key", "value")
        assert target == known.get(key)
        known[key] = value
    assert "noise" in sample["roles"]


def test_roles_of_copying():
    (found,) = ember_json("mad", "tasks", "copying")
    (sample,) = found["samples"]
    rows = zip(sample["inputs"], sample["roles"], strict=True)
    tokens = [token for token, role in rows if role == "token"]
    assert tokens == [target for target in sample["targets"] if target is not None]
    assert sample["roles"].count("copy") == 1


def test_tasks_as_text():
    text = ember("mad", "tasks").stdout
    for name in task_names():
        assert name in text
    assert "input " in text
    assert "input " not in ember("mad", "tasks", "--sample", "0").stdout


def test_scales():
    found = {each["name"]: each for each in ember_json("mad", "scales")}
    assert list(found) == list(SCALES)
    assert found["full"]["runs_per_architecture"] == 396
    assert found["mini"]["sizes"]["compression"]["seq_len"] == 16
    assert "to try the commands out" in ember("mad", "scales").stdout


def test_a_cluster_without_ray(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # its import fails
    words = ("mad", "run", "gru", "--ray", "auto", "--out", tmp_path / "s", *TINY)
    assert "pip install 'ray>=" in ember(*words, code=2).stderr


@pytest.mark.parametrize("name", task_names())
def test_short_names_of_the_table_work(name):
    short = short_name(name)
    (found,) = ember_json("mad", "tasks", short, "--sample", "0")
    assert found["name"] == name
    (size,) = ember_json("mad", "sizes", "gru", "--task", short, "--scale", "tiny")
    assert size["task"] == name
    assert task(short, num_train=4).name == name


def test_settings_can_be_changed_and_are_not_mixed(tmp_path):
    """Changed settings are stored and shown, and a folder holds one set of settings."""
    words = ("mad", "run", "gru", "--task", "compress", *TINY, "--out", tmp_path / "s")
    changes = ("--width", "8", "--steps", "3", "--lr", "0.01", "--lr", "0.001")
    found = ember_json(*words, *changes)
    assert found["settings"] == {
        **SCALES["tiny"].settings(),
        "hidden_size": 8,
        "steps": 3,
        "learning_rates": [0.01, 0.001],
    }
    runs = [each.run for each in Store(tmp_path / "s").done()]
    assert {(run.hidden_size, run.steps) for run in runs} == {(8, 3)}
    assert sorted(run.learning_rate for run in runs) == [0.001, 0.01]
    page = (tmp_path / "s" / "report.html").read_text(encoding="utf-8")
    assert "Settings: width 8, 3 steps, batch size 8, learning rate 0.001 / 0.01" in page
    assert "2 of 2 runs done" in page
    results = json.loads((tmp_path / "s" / "results.json").read_text())
    assert results["sweep"]["settings"] == found["settings"]
    result = ember(*words, code=2)
    assert "its hidden_size is 8, not 16; use another folder" in result.stderr


def test_changed_settings_have_a_folder_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("mad", "run", "gru", "--task", "compress", *TINY)
    ember(*words, "--width", "8", "--lr", "0.01", "--lr", "0.001")
    ember(*words)
    folders = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert folders == ["mad-tiny-numpy", "mad-tiny-width8-lr0.01-0.001-numpy"]


def test_a_sweep_written_before_settings_were_stored_continues(tmp_path):
    words = ("mad", "run", "gru", "--task", "compress", *TINY, "--out", tmp_path)
    ember(*words)
    info = json.loads((tmp_path / "sweep.json").read_text())
    del info["settings"]
    (tmp_path / "sweep.json").write_text(json.dumps(info))
    assert "1 of 1 runs are done already" in ember(*words).stdout
    assert "its steps is None, not 3" in ember(*words, "--steps", "3", code=2).stderr
