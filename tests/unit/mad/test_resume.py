"""Interrupted runs continue from their own checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from ember_ml import mad, use_backend
from ember_ml.configs.mad import RunConfig
from ember_ml.mad import ProcessPool, Sweep, evaluation
from ember_ml.mad.run import Point, Result
from ember_ml.mad.store import run_name

SIZES = {"vocab_size": 8, "seq_len": 8, "num_train": 32, "num_validation": 8, "num_test": 8}
MEASURED = ("seconds", "seconds_per_step")


@pytest.fixture(autouse=True)
def _save_always(monkeypatch) -> None:
    monkeypatch.setattr(evaluation, "SAVE_SECONDS", 0.0)


def run_of(**fields) -> RunConfig:
    task = {"type": "in-context-recall", **SIZES}
    fields = {"layers": "gru", "hidden_size": 8, "batch_size": 8, "steps": 12, **fields}
    return RunConfig(architecture="ours", task=task, evaluate_every=2, **fields)


class InterruptedRunError(Exception):
    pass


def interrupt(run: RunConfig, checkpoint: Path, after: int) -> list[int]:
    """Do a run until the given evaluation, and return the steps of its evaluations."""
    steps: list[int] = []

    def observe(point: Point) -> None:
        if len(steps) == after:
            raise InterruptedRunError
        steps.append(point.step)

    with pytest.raises(InterruptedRunError):
        mad.execute(run, observe, checkpoint)
    return steps


def unmeasured(result: Result) -> dict:
    return {name: x for name, x in result._asdict().items() if name not in MEASURED}


def test_an_interrupted_run_equals_an_uninterrupted_one(backend: str, tmp_path: Path) -> None:
    run, checkpoint = run_of(layers="attention+swiglu"), tmp_path / "checkpoint"
    whole = mad.execute(run)
    assert interrupt(run, checkpoint, after=2) == [2, 4]
    assert interrupt(run, checkpoint, after=2) == [4, 6]  # the last one before, then a new one
    observed: list[int] = []
    found = mad.execute(run, lambda point: observed.append(point.step), checkpoint)
    assert observed == [6, 8, 10, 12], "the steps before the checkpoint are not repeated"
    assert unmeasured(found) == unmeasured(whole)


@pytest.mark.parametrize("other", [{"seed": 1}, {"code": "changed"}, {"hidden_size": 16}])
def test_a_checkpoint_of_another_run_is_not_used(other: dict, tmp_path: Path) -> None:
    interrupt(run_of(), tmp_path / "c", after=2)
    observed: list[int] = []
    found = mad.execute(run_of(**other), lambda point: observed.append(point.step), tmp_path / "c")
    assert observed == [2, 4, 6, 8, 10, 12]
    assert unmeasured(found) == unmeasured(mad.execute(run_of(**other)))


@pytest.mark.parametrize("name", ["training.json", "model.safetensors", "training.safetensors"])
def test_a_damaged_checkpoint_is_not_used(name: str, tmp_path: Path) -> None:
    interrupt(run_of(), tmp_path / "c", after=2)
    file = tmp_path / "c" / name
    file.write_bytes(file.read_bytes()[:-20])
    found = mad.execute(run_of(), None, tmp_path / "c")
    assert unmeasured(found) == unmeasured(mad.execute(run_of()))


def test_a_sweep_continues_its_runs(tmp_path: Path) -> None:
    """The first evaluation a sweep reports is that of the checkpoint, which it then removes."""
    options = {"scale": "tiny", "tasks": ["compression"], "backend": "numpy"}
    sweep = Sweep(["gru"], tmp_path / "s", **options)
    sweep.open()
    (run,) = sweep.runs
    folder = sweep.store.checkpoints / run_name(run)
    with use_backend("numpy"):
        interrupt(run, folder, after=1)
    assert sweep.store.has_checkpoint(run)
    steps = [
        event.payload.step
        for event in sweep.events(ProcessPool(1, "numpy", checkpoints=sweep.store.checkpoints))
        if isinstance(event.payload, Point)
    ]
    assert steps == [2, 4]
    assert not sweep.store.has_checkpoint(run)
    assert not sweep.store.checkpoints.exists()
    uninterrupted = Sweep(["gru"], tmp_path / "whole", **options)
    uninterrupted.run(ProcessPool(1, "numpy"))
    (one,), (other,) = sweep.store.done(), uninterrupted.store.done()
    assert unmeasured(one.result) == unmeasured(other.result)
