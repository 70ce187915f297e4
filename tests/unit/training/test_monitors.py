"""Monitored values: NaN, misspelled names, functions as metrics, and counters in checkpoints."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.backend import use_backend
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import layers
from ember_ml.training import Trainer, losses, schedules
from ember_ml.training.callbacks import Callback, Checkpoint, EarlyStopping
from ember_ml.training.callbacks.base import Best
from ember_ml.training.metrics import FunctionMetric
from tests.unit.training.classifiers import X, Y, trainer


class Scores(Callback):
    """Adds a given score to each epoch."""

    def __init__(self, *scores: float) -> None:
        self.scores = scores

    def on_epoch_end(self, trainer, record) -> None:
        record["score"] = self.scores[trainer.epoch - 1]


@pytest.mark.parametrize(("mode", "good"), [("min", 0.5), ("max", 2.0)])
def test_nan_is_never_the_best(mode: str, good: float) -> None:
    best = Best("x", mode)
    assert not best.improves({"x": math.nan})
    assert best.improves({"x": 1.0})
    assert not best.improves({"x": math.nan})
    assert best.improves({"x": good})
    assert best.value == good
    best.value = math.nan  # of a checkpoint of an earlier version
    assert best.improves({"x": 7.0})


def test_a_nan_metric_is_not_saved_as_the_best(tmp_path: Path) -> None:
    with use_backend("numpy"):
        stop = EarlyStopping("score", patience=1)
        save = Checkpoint(tmp_path, monitor="score")
        ours = trainer(callbacks=[Scores(math.nan, 2.0, math.nan, math.nan, 1.0), save, stop])
        ours.fit((X, Y), epochs=5)
        assert ours.epoch == 4
        assert save.best.value == stop.best.value == 2.0
        assert trainer().resume(tmp_path / "best").epoch == 2


@pytest.mark.parametrize("first", [math.nan, math.inf])
@pytest.mark.parametrize("threshold_mode", ["relative", "absolute"])
def test_a_plateau_continues_after_nan_and_infinity(first: float, threshold_mode: str) -> None:
    schedule = schedules.Plateau(factor=0.5, patience=0, threshold_mode=threshold_mode)
    for value in (first, 3.0, 2.0, 1.0):
        schedule.observe(value)
    bad_first = 0.5 if math.isnan(first) else 1.0
    assert schedule(0) == bad_first
    schedule.observe(math.nan)
    assert schedule(0) == bad_first * 0.5


@pytest.mark.parametrize("order", [0, 1])
def test_counters_in_a_checkpoint_do_not_depend_on_the_order(order: int, tmp_path: Path) -> None:
    def callbacks() -> list[Callback]:
        both = [Checkpoint(tmp_path), EarlyStopping("score", patience=2)]
        return [Scores(1, 2, 3, 4, 5, 6), *(both if order else both[::-1])]

    with use_backend("numpy"):
        whole = trainer(callbacks=callbacks()).fit((X, Y), epochs=6)
        trainer(callbacks=callbacks()).fit((X, Y), epochs=2)
        stop = callbacks()
        again = trainer(callbacks=stop).resume(tmp_path / "last")
        again.fit((X, Y), epochs=6)
        assert again.history.losses == whole.losses
        assert len(whole.column("loss")) == 4
        finished = trainer(callbacks=callbacks()).resume(tmp_path / "last")
        finished.fit((X, Y), epochs=6)  # it had stopped, and stays where it is
        assert finished.epoch == 4


def test_a_new_fit_after_an_early_stop_counts_anew() -> None:
    with use_backend("numpy"):
        ours = trainer(callbacks=[Scores(*range(1, 12)), EarlyStopping("score", patience=1)])
        ours.fit((X, Y), epochs=9)
        assert ours.epoch == 3
        ours.fit((X, Y), epochs=9)
        assert ours.epoch == 5


@pytest.mark.parametrize(
    ("callback", "message"),
    [
        (lambda: EarlyStopping("val_los"), "'val_los', .*did you mean 'val_loss'"),
        (lambda: Checkpoint("unused", monitor="val_acc"), "did you mean 'val_accuracy'"),
        (lambda: EarlyStopping("accuracy"), "did you mean 'val_accuracy'"),
    ],
)
def test_a_misspelled_monitor_is_an_error_before_the_first_step(callback, message: str) -> None:
    ours = trainer(metrics=["accuracy"], callbacks=[callback()])
    with pytest.raises(ValueError, match=message):
        ours.fit((X, Y), (X, Y))
    assert ours.step == 0


def test_a_monitor_of_the_validation_needs_validation() -> None:
    ours = trainer(callbacks=[EarlyStopping()])
    with pytest.raises(ValueError, match=r"'val_loss', .*pass validation data to fit"):
        ours.fit((X, Y))


def test_functions_are_metrics(backend: str) -> None:
    mask = np.arange(48) % 3 > 0
    x, y = X, X[:, :3] * 2.0

    def error(prediction: Any, target: Any) -> Any:
        return ops.mean(ops.abs(prediction - target), axis=-1)

    def scalar(prediction: Any, target: Any) -> Any:
        return ops.mean(ops.abs(prediction - target))

    ops.random.set_seed(0)
    ours = trainer(layers.Dense(5, 3), loss="mse", metrics=[error, scalar, losses.MAE()])
    outputs = ours.predict(x).numpy()
    wanted = np.abs(outputs - y).mean()
    results = ours.evaluate((x, y), batch_size=20)  # batches of 20, 20 and 8
    for name in ("error", "scalar", "mae"):
        assert results[name] == pytest.approx(wanted, rel=1e-5)
    masked = trainer(ours.model, loss="mse", metrics=[error, losses.MAE()])
    found = masked.evaluate(DataLoader(ArrayDataset(x, y, mask), 20))
    assert found["error"] == pytest.approx(np.abs(outputs - y)[mask].mean(), rel=1e-5)
    assert found["mae"] == pytest.approx(found["error"], rel=1e-5)
    with pytest.raises(ValueError, match="metric 'scalar': the batch has a mask"):
        trainer(ours.model, loss="mse", metrics=[scalar]).evaluate(
            DataLoader(ArrayDataset(x, y, mask), 20)
        )


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ([lambda prediction: 1.0], TypeError, r"must accept \(prediction, target\)"),
        ([lambda x, y: 0.0, lambda x, y: 1.0], ValueError, "two metrics are named 'metric'"),
        (["accurac"], ValueError, "did you mean 'accuracy'"),
    ],
)
def test_wrong_metrics_are_errors_at_once(metrics: list, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        trainer(metrics=metrics)


def test_a_function_metric_can_be_named() -> None:
    metric = FunctionMetric(lambda x, y: ops.abs(x - y), name="distance")
    assert trainer(metrics=[metric]).metrics[0].name == "distance"


def test_the_signature_of_the_trainer_is_explicit() -> None:
    names = list(inspect.signature(Trainer).parameters)
    assert names[:3] == ["model", "loss", "optimizer"]
    assert "kwargs" not in names
