"""Tuning of each architecture before the runs of a sweep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ember_ml.mad import ProcessPool, Sweep, SweepError
from ember_ml.mad.report import write_report
from ember_ml.mad.scales import Rates
from ember_ml.training.sweeps import Event
from tests.unit.cli.commands import ember, ember_json

NAMES = ["gru", "min_gru"]
OPTIONS = {"scale": "tiny", "tasks": ["compression", "memorization"], "backend": "numpy"}


def score(run: dict) -> dict[str, float]:
    """Return scores that are best at a learning rate that depends on the architecture."""
    best = 1e-3 if run["architecture"] == "gru" else 1e-2
    return {"validation_accuracy": 0.5, "validation_loss": abs(run["learning_rate"] - best)}


def runner_of(failing: str = ""):
    """Return a runner in this process whose trials have made-up scores."""

    def runner(source):
        while (job := source()) is not None:
            run = job.data["run"]
            yield Event(job, "started")
            if run["architecture"] == failing:
                yield Event(job, "failed", "Traceback ...\nValueError: it burst")
            else:
                yield Event(job, "done", {"kind": "told", "values": score(run)})

    return runner


def tuned(path: Path, budget: int = 4, failing: str = "") -> Sweep:
    sweep = Sweep(NAMES, path, seeds=[3, 4], tune=budget, **OPTIONS)
    sweep.open()
    for _ in sweep.tune(runner_of(failing)):
        pass
    return sweep


def test_each_architecture_has_its_own_rates_under_an_equal_budget(tmp_path: Path) -> None:
    sweep = tuned(tmp_path / "s")
    assert sweep.tuning is not None
    outcomes = sweep.tuning.outcomes()
    assert [each.trials for each in outcomes] == [4] * 4
    tried = {
        name: [
            each.params for task in sweep.tasks for each in sweep.tuning._tuner(name, task).trials
        ]
        for name in NAMES
    }
    assert tried["gru"] == tried["min_gru"], "the same values for all"
    for name in NAMES:
        for at, task in enumerate(sweep.tasks):
            trials = tried[name][4 * at : 4 * at + 4]
            best = min(trials, key=lambda p: score({"architecture": name, **p})["validation_loss"])
            runs = [
                run
                for run in sweep.runs
                if run.architecture == name and run.task.component == f"tasks/{task}"
            ]
            assert [run.seed for run in runs] == [3, 4]
            assert {Rates(run.learning_rate, run.weight_decay) for run in runs} == {Rates(**best)}
    assert len(sweep.runs) == 8


def test_it_continues_and_refuses_another_budget(tmp_path: Path) -> None:
    sweep = Sweep(NAMES, tmp_path / "s", seeds=[3, 4], tune=4, **OPTIONS)
    sweep.open()
    events = sweep.tune(runner_of())
    for _ in range(7):
        next(events)
    events.close()
    assert sweep.tuning is not None
    assert not sweep.tuning.is_complete()
    del events, sweep  # the trials of a tuner that exists are not taken over
    again = tuned(tmp_path / "s")
    whole = tuned(tmp_path / "whole")
    assert again.runs == whole.runs
    reopened = Sweep(NAMES, tmp_path / "s", seeds=[3, 4], tune=4, **OPTIONS)
    reopened.open()
    assert reopened.runs == again.runs
    for other in (None, 5):
        with pytest.raises(SweepError, match=r"another sweep: its tuning is \{'budget': 4\}"):
            Sweep(NAMES, tmp_path / "s", tune=other, **OPTIONS).open()
    with pytest.raises(ValueError, match="tune"):
        Sweep(NAMES, tmp_path / "s", tune=0, **OPTIONS)


def test_the_report_says_so(tmp_path: Path) -> None:
    sweep = tuned(tmp_path / "s", failing="min_gru")
    page = write_report(tmp_path / "s").read_text()
    assert '<section id="tuning">' in page
    assert "the best of 4 trials by validation accuracy" in page
    rates = sweep.runs[0].learning_rate
    assert f"{rates:.2e}" in page
    rows = json.loads((tmp_path / "s" / "results.json").read_text())["tuning"]
    assert {(row["architecture"], row["trials"], row["failed"]) for row in rows} == {
        ("gru", 4, 0),
        ("min_gru", 4, 4),
    }
    scale = sweep.scale
    default = [run.learning_rate for run in sweep.runs if run.architecture == "min_gru"]
    assert set(default) == {scale.learning_rates[0]}, "no trial succeeded"
    missing = json.loads((tmp_path / "s" / "results.json").read_text())["missing"]
    assert len(missing) == len(sweep.runs)


def test_command(tmp_path: Path) -> None:
    words = ("mad", "run", "gru", "--task", "compression", "--scale", "tiny", "--backend", "numpy")
    words = (*words, "--workers", "1", "--out", tmp_path / "s", "--tune", "--budget", "2")
    result = ember(*words)
    assert "tuning: 2 of 2 trials, 2 of each architecture on each task" in result.stdout
    found = ember_json(*words)
    (run,) = Sweep(["gru"], tmp_path / "s", tune=2, **{**OPTIONS, "tasks": ["compression"]}).runs
    rates = found["tuning"]["rates"]["gru"]["compression"]
    assert found["tuning"]["budget"] == 2
    assert rates["learning_rate"] != run.learning_rate, "before the folder is opened"
    assert found["done"] == 1
    both = (*words, "--lr", "1e-3")
    assert "pass --tune or --lr, not both" in ember(*both, code=2).stderr


def test_in_processes(tmp_path: Path) -> None:
    sweep = Sweep(["gru"], tmp_path / "s", tune=2, **{**OPTIONS, "tasks": ["compression"]})
    sweep.run(ProcessPool(1, "numpy", checkpoints=sweep.store.checkpoints))
    (done,) = sweep.store.done()
    assert sweep.tuning is not None
    (outcome,) = sweep.tuning.outcomes()
    assert outcome.best is not None
    assert outcome.best.scores["validation_loss"] == done.result.validation_loss
    assert not list((tmp_path / "s" / "tuning").glob("checkpoints/*"))
