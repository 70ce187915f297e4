"""Trials in worker processes and on a cluster."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ember_ml import use_backend
from ember_ml._core.errors import ArgumentError
from ember_ml.training.sweeps import ProcessRunner, RayRunner
from ember_ml.training.tuning import ASHA, Float, SelfTuningModule, TuningError
from ember_ml.training.tuning.parallel import objective_jobs, trial_events
from tests.robustness.scale import FULL
from tests.unit.training.tuning import objectives

SPACE = {"x": Float(0.0, 1.0)}


@pytest.fixture(autouse=True)
def _on_numpy():
    """Workers that load no other framework start quickly."""
    with use_backend("numpy"):
        yield


def tuner_of(history: Path | None = None, **options) -> SelfTuningModule:
    return SelfTuningModule(SPACE, history, "score", sampler="random", **options)


def outcomes(tuner: SelfTuningModule) -> list[tuple]:
    return [(each.id, each.params, each.state, each.scores, each.reports) for each in tuner.trials]


@pytest.mark.parametrize("objective", [objectives.parabola, objectives.climb])
def test_one_worker_equals_this_process(objective, tmp_path: Path) -> None:
    here, there = (tuner_of(tmp_path / name, pruner=ASHA(1, 2)) for name in ("a", "b"))
    here.fit(objective, budget=8)
    there.fit(objective, budget=8, workers=1)
    assert outcomes(here) == outcomes(there)
    if objective is objectives.climb:
        assert {each.state for each in there.trials} == {"done", "pruned"}


def test_workers_and_what_is_done_already(tmp_path: Path) -> None:
    first = tuner_of(tmp_path / "h")
    first.fit(objectives.parabola, budget=3)
    done = outcomes(first)
    second = tuner_of(tmp_path / "h")
    best = second.fit(objectives.parabola, budget=7, workers=2)
    assert outcomes(second)[:3] == done
    assert [each.state for each in second.trials] == ["done"] * 7
    assert best is second.best
    assert second.fit(objectives.parabola, budget=7, workers=2) is second.best
    assert len(second.trials) == 7


def test_training_data(tmp_path: Path) -> None:
    from ember_ml import ops

    base = {
        "model": {"type": "layers/dense", "in_features": 3, "out_features": 1},
        "trainer": {"loss": "mse", "optimizer": "sgd"},
        "epochs": 3,
    }
    x = ops.random.normal((64, 3), seed=0)
    data = x, ops.sum(x, axis=1, keepdims=True)
    space = {"trainer.learning_rate": Float(1e-4, 0.3, log=True)}
    options = {"metric": "val_loss", "mode": "min", "sampler": "random", "base": base}
    here, there = (SelfTuningModule(space, None, **options) for _ in range(2))
    here.fit(data, data, budget=3)
    there.fit(data, data, budget=3, workers=1)
    for one, other in zip(here.trials, there.trials, strict=True):
        assert one.scores["val_loss"] == pytest.approx(other.scores["val_loss"], rel=1e-5)
        assert one.params == other.params


def test_failures_are_recorded_and_the_search_goes_on(tmp_path: Path) -> None:
    tuner = tuner_of(tmp_path / "h")
    tuner.fit(objectives.troubled, budget=8, workers=2)
    states = {each.id: each.state for each in tuner.trials}
    assert states == {at: "done" if at % 6 == 0 else "failed" for at in range(6)} | {
        6: "done",
        7: "failed",
    }
    reasons = {each.id: each.reason for each in tuner.trials}
    assert "ValueError: it burst" in reasons[1]
    assert "diverged" in reasons[2]
    assert "out of memory" in reasons[3]
    assert reasons[4] == "its process died (exit code -9)"
    assert "not finite" in reasons[5]


def test_an_interrupted_search_gives_its_trials_back(tmp_path: Path) -> None:
    tuner = tuner_of(tmp_path / "h")
    runner = ProcessRunner(2, "numpy")
    events = trial_events(tuner, runner, objective_jobs(objectives.parabola), 4)
    started = [next(events).job.key.id for _ in range(2)]
    events.close()
    assert [each.id for each in tuner.lost()] == started
    tuner.fit(objectives.parabola, budget=4, workers=1)
    assert [each.state for each in tuner.trials] == ["done"] * 4


def test_a_killed_worker_is_replaced(tmp_path: Path, monkeypatch) -> None:
    import multiprocessing

    monkeypatch.setenv("TUNING_LOG", str(tmp_path / "log"))
    tuner = tuner_of(tmp_path / "h")
    runner = ProcessRunner(1, "numpy")
    killed = []
    for event in trial_events(tuner, runner, objective_jobs(objectives.slow), 3):
        if event.kind == "report" and event.value[0] == 2 and not killed:
            (child,) = multiprocessing.active_children()
            os.kill(child.pid, signal.SIGKILL)
            killed.append(event.job.key.id)
    assert [(each.id, each.state) for each in tuner.trials] == [
        (0, "failed"),
        (1, "done"),
        (2, "done"),
    ]
    assert "died (exit code -9)" in tuner.trials[0].reason


@pytest.mark.skipif(not FULL, reason="`make robustness` runs searches on a cluster")
def test_on_a_cluster(tmp_path: Path) -> None:
    tuner = tuner_of(tmp_path / "h", pruner=ASHA(1, 2))
    tuner.fit(objectives.climb, budget=6, runner=RayRunner(None, "numpy"))
    assert {each.state for each in tuner.trials} == {"done", "pruned"}
    for each in tuner.trials:
        steps = [step for step, _ in each.reports]
        assert steps == list(range(1, len(steps) + 1))
        assert (len(steps) == 8) or each.state == "pruned"


def test_what_is_refused(tmp_path: Path) -> None:
    tuner = tuner_of(tmp_path / "h")
    with pytest.raises(ArgumentError, match="top level of a module"):
        tuner.fit(lambda trial: 0.0, budget=1, workers=1)
    with pytest.raises(ArgumentError, match="workers must be at least 1, not 0"):
        tuner.fit(objectives.parabola, budget=1, workers=0)
    with pytest.raises(ValueError, match="budget"):
        tuner.fit(objectives.parabola, budget=0, workers=1)
    with pytest.raises(TuningError, match="belongs to another search"):
        SelfTuningModule({"y": Float(0.0, 1.0)}, tmp_path / "h", "score", sampler="random")
    assert not tuner.trials
