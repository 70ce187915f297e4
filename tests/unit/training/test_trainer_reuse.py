"""Trainers that continue, move between backends, and take objects, masks and averages."""

from __future__ import annotations

import csv
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import available, use_backend
from ember_ml.data import ArrayDataset, DataLoader, GeneratedDataset
from ember_ml.nn import layers
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer, TrainingInterrupted, metrics, schedules
from ember_ml.training.callbacks import (
    Callback,
    Checkpoint,
    CSVLogger,
    EarlyStopping,
    LRMonitor,
    TensorBoardLogger,
)
from ember_ml.training.optimizer import AdamW
from tests.unit.training.classifiers import X, Y, mlp, trainer

RNG = np.random.default_rng(1)
AVERAGED = [{"ema": 0.9}, {"optimizer": "schedule_free_adamw"}]


def loss_of(model: nn.Module) -> float:
    return float(ops.cross_entropy(model.eval()(array(X)), array(Y)))


def cross_entropy(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    return -np.take_along_axis(logs, classes[..., None], -1)[..., 0]


@pytest.mark.parametrize("first", [{"epochs": 2}, {"steps": 2}, {"steps": 3}, {"steps": 4}])
def test_a_second_fit_continues_where_the_first_ended(first: dict) -> None:
    whole = trainer().fit((X, Y), epochs=3, batch_size=16).losses
    arrays, loaded = trainer(), trainer()
    loader = DataLoader(ArrayDataset(X, Y), 16, shuffle=True)
    for limit in (first, {"until_epoch": 3}):
        arrays.fit((X, Y), batch_size=16, **limit)
        loaded.fit(loader, **limit)
    assert arrays.history.losses == loaded.history.losses == whole
    assert arrays.fit((X[:20], Y[:20]), epochs=2, batch_size=10).epochs[-1]["step"] == 13


def test_resuming_with_another_loader_must_be_explicit(tmp_path: Path) -> None:
    first = trainer()
    first.fit((X, Y), steps=1)
    first.save(tmp_path / "a")
    again = trainer().resume(tmp_path / "a")
    with pytest.raises(ValueError, match=r"batch_size=32.*trainer.loader_state = None"):
        again.fit((X, Y), epochs=1, batch_size=16)
    again.loader_state = None
    again.fit((X, Y), epochs=1, batch_size=16)
    assert again.step == 4


def test_the_model_says_which_backend(backend: str) -> None:
    ours = trainer(metrics=["accuracy"])
    other = next(name for name in available() if name != backend)
    losses: list[float] = []
    with use_backend(other):
        losses += ours.fit((X, Y), (X, Y), epochs=1).losses
        assert ours.predict(X).backend == backend
    ours.model.to_backend(other)
    thread = threading.Thread(target=lambda: ours.fit((X, Y), (X, Y), epochs=1))
    thread.start()
    thread.join()
    assert ours.predict(X).backend == other
    whole = trainer().fit((X, Y), epochs=2).losses
    assert np.allclose(ours.history.losses, whole, atol=1e-5)


def test_components_are_given_as_objects_and_classes(backend: str) -> None:
    by_name = trainer(optimizer="adamw", schedule={"type": "linear", "total_steps": 9})
    model = mlp()
    optimizer = AdamW(model, learning_rate=0.02)
    by_object = trainer(
        model,
        loss=ember_ml.training.losses.CrossEntropy,
        optimizer=optimizer,
        schedule=schedules.Linear(9),
        metrics=[metrics.Accuracy(), metrics.F1],
    )
    assert by_object.optimizer is optimizer
    assert by_object.fit((X, Y), epochs=2).losses == by_name.fit((X, Y), epochs=2).losses
    assert set(by_object.evaluate((X, Y))) == {"loss", "accuracy", "f1"}
    with pytest.raises(TypeError, match="the optimizer must be an Optimizer"):
        trainer(optimizer=lambda model: model)


def test_masks_reach_the_metrics_and_the_mean(backend: str) -> None:
    x = RNG.standard_normal((12, 4, 5)).astype("float32")
    y = RNG.integers(0, 3, (12, 4))
    mask = RNG.random((12, 4)) < 0.4
    ours = trainer(layers.Dense(5, 3), metrics=["accuracy"])
    found = ours.evaluate(DataLoader(ArrayDataset(x, y, mask), 5))
    scores = ours.predict(x).numpy()
    assert found["accuracy"] == pytest.approx((scores.argmax(-1) == y)[mask].mean())
    assert found["loss"] == pytest.approx(cross_entropy(scores, y)[mask].mean(), rel=1e-5)


def test_predict_takes_datasets_loaders_and_dicts(backend: str) -> None:
    ours = trainer()
    wanted = ours.predict(X).numpy()
    for data in (
        ArrayDataset(X),
        DataLoader(ArrayDataset(X, Y), 7),
        {"inputs": X, "targets": Y},
        (X, Y),
    ):
        assert np.allclose(ours.predict(data, batch_size=20).numpy(), wanted, atol=1e-6)


class Nested(Trainer):
    """Takes batches of another form."""

    def compute(self, batch):
        outputs = self.model(batch["a"]["x"])
        return self.loss(outputs, batch["y"]), outputs

    def measure(self, batch, outputs):
        for metric in self.metrics:
            metric.update(outputs, batch["y"])
        return len(batch["y"])


def test_batches_of_another_form_are_computed_and_measured(backend: str) -> None:
    data = GeneratedDataset(lambda at, rng: {"a": {"x": X[at]}, "y": Y[at]}, 48)
    ours = Nested(
        mlp(), "cross_entropy", optimizer="adam", learning_rate=0.02, metrics=["accuracy"],
        progress=False,
    )  # fmt: skip
    plain = trainer(metrics=["accuracy"])
    assert np.allclose(ours.fit(data).losses, plain.fit((X, Y)).losses, atol=1e-5)
    assert ours.evaluate(data) == pytest.approx(plain.evaluate((X, Y)), rel=1e-5)


def test_metrics_without_targets_are_an_error() -> None:
    class Scored(nn.Module):
        def __init__(self) -> None:
            self.inner = mlp()

        def forward(self, x, y):
            return ops.cross_entropy(self.inner(x), y)

    with pytest.raises(ValueError, match=r"override Trainer.measure"):
        trainer(Scored(), loss=None, metrics=["accuracy"]).evaluate((X, Y))


@pytest.mark.parametrize("options", AVERAGED)
def test_a_checkpoint_holds_the_weights_that_were_evaluated(
    options: dict, backend: str, tmp_path: Path
) -> None:
    ours = trainer(**options, callbacks=[Checkpoint(tmp_path, monitor="val_loss")])
    ours.fit((X, Y), (X, Y), epochs=4)
    best = min(ours.history.column("val_loss"))
    assert loss_of(ember_ml.load(tmp_path / "best")) == pytest.approx(best, rel=1e-5)
    again = trainer(**options).resume(tmp_path / "last")
    assert again.evaluate((X, Y))["loss"] == pytest.approx(best, rel=1e-5)
    whole = trainer(**options)
    whole.fit((X, Y), epochs=6)
    assert again.fit((X, Y), epochs=6).losses == whole.history.losses
    assert ours.evaluate((X, Y)) == ours.evaluate((X, Y))


@pytest.mark.parametrize("options", AVERAGED)
def test_the_best_is_what_was_evaluated(options: dict, backend: str) -> None:
    class Score(Callback):
        def on_epoch_end(self, trainer, record) -> None:
            record["score"] = float(trainer.epoch == 2)
            seen.append(trainer.evaluate((X, Y))["loss"])

    seen: list[float] = []
    stop = EarlyStopping("score", mode="max", patience=1, restore_best=True)
    ours = trainer(**options, callbacks=[Score(), stop])
    ours.fit((X, Y), epochs=9)
    assert ours.epoch == 4
    assert ours.evaluate((X, Y))["loss"] == pytest.approx(seen[1], rel=1e-5)
    assert loss_of(ours.model) == pytest.approx(seen[1], rel=1e-5)


def test_ctrl_c_saves_the_training_and_not_the_best(tmp_path: Path) -> None:
    class Press(Callback):
        def on_epoch_end(self, trainer, record) -> None:
            if trainer.epoch == 3:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)

    first = trainer(
        callbacks=[
            Press(),
            TensorBoardLogger(tmp_path / "board"),
            EarlyStopping("loss", mode="max", patience=9, restore_best=True),
            Checkpoint(tmp_path / "kept"),
        ]
    )
    with pytest.raises(TrainingInterrupted):
        first.fit((X, Y), epochs=6)
    assert first.interrupted
    assert first.epoch == 3  # an evaluation is where one stops, too
    again = trainer().resume(tmp_path / "kept" / "last")
    assert again.fit((X, Y), epochs=6).losses == trainer().fit((X, Y), epochs=6).losses


def test_resuming_with_other_parts(tmp_path: Path) -> None:
    first = trainer(
        callbacks=[EarlyStopping("loss", patience=7)],
        schedule={"type": "linear", "total_steps": 99},
    )
    first.fit((X, Y), epochs=5)
    first.save(tmp_path / "a")
    stop = EarlyStopping("loss", patience=7)
    again = trainer(callbacks=[LRMonitor(), stop], schedule="plateau", ema=0.99)
    again.resume(tmp_path / "a")
    assert stop.best.value == first.history.epochs[-1]["loss"]
    assert again.evaluate((X, Y)) == first.evaluate((X, Y))  # no average of the first weights


def test_a_csv_file_continues_after_a_restart(tmp_path: Path) -> None:
    for epochs, options in ((3, {}), (5, {"resume": True})):
        ours = trainer(callbacks=[CSVLogger(tmp_path / "log.csv"), Checkpoint(tmp_path / "c")])
        if options:
            ours.resume(tmp_path / "c" / "last")
        ours.fit((X, Y), epochs=epochs)
    with open(tmp_path / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in rows] == ours.history.column("loss")


def test_records_hold_numbers_alone(tmp_path: Path) -> None:
    ours = Trainer(
        mlp(), "cross_entropy", metrics=["confusion_matrix", "accuracy"],
        callbacks=[TensorBoardLogger(tmp_path)],
    )  # fmt: skip
    history = ours.fit((X, Y), (X, Y))
    history.plot()
    assert {"val_accuracy"} == {name for name in history.epochs[0] if "a" in name} - {"val_loss"}
    assert len(ours.evaluate((X, Y))["confusion_matrix"]) == 3


def test_modes_that_change_on_the_way_are_heeded(backend: str) -> None:
    ops.random.set_seed(1)
    model = nn.Sequential(layers.Dense(5, 4), layers.BatchNorm(4), layers.Dense(4, 3))

    class Still(Callback):
        def on_step_end(self, trainer, record) -> None:
            means.append(model[1].running_mean.numpy().copy())
            if trainer.step == 2:
                model[1].eval()

    means: list[np.ndarray] = []
    trainer(model, callbacks=[Still()]).fit((X, Y), epochs=1, batch_size=12)
    assert (means[0] != means[1]).any()
    assert (means[1] == means[3]).all()


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_part_frozen_between_fits_stays_while_the_rest_learns(
    accumulate: int, backend: str
) -> None:
    ours = trainer(mlp(), accumulate=accumulate)
    ours.fit((X, Y), epochs=1, batch_size=12)
    first, last = ours.model.layers
    first.freeze()
    kept, changed = first.state_dict(), last.state_dict()
    ours.fit((X, Y), epochs=2, batch_size=12)
    assert all((first.state_dict()[name] == kept[name]).all() for name in kept)
    assert all((last.state_dict()[name] != changed[name]).any() for name in changed)
    first.unfreeze()
    ours.fit((X, Y), epochs=3, batch_size=12)
    assert (first.weight != kept["weight"]).any()


def test_every_callback_hears_the_end_also_when_one_fails(tmp_path: Path) -> None:
    class Fails(Callback):
        def on_step_end(self, trainer, record) -> None:
            raise RuntimeError("first")

        def on_fit_end(self, trainer) -> None:
            raise ValueError("second")

    class Hears(Callback):
        ended = False

        def on_fit_end(self, trainer) -> None:
            self.ended = True

    hears = Hears()
    with pytest.raises(ValueError, match="second"):
        trainer(callbacks=[Fails(), hears]).fit((X, Y))
    assert hears.ended
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        trainer(callbacks=[Checkpoint(tmp_path / "file" / "c"), hears]).fit((X, Y), epochs=99)


def test_an_evaluation_leaves_the_loader_where_it_is() -> None:
    class Look(Callback):
        def on_step_end(self, trainer, record) -> None:
            trainer.evaluate(loader)

    loader = DataLoader(ArrayDataset(X, Y), 16, shuffle=True)
    losses = trainer(callbacks=[Look()]).fit(loader, loader, epochs=2).losses
    plain = DataLoader(ArrayDataset(X, Y), 16, shuffle=True)
    assert losses == trainer().fit(plain, epochs=2).losses


def test_a_schedule_may_be_a_function(tmp_path: Path) -> None:
    ours = trainer(schedule=lambda step: 1 / (1 + step))
    ours.fit((X, Y), epochs=1)
    ours.save(tmp_path / "a")
    rates = [record["learning_rate"] for record in ours.history.steps]
    assert rates == pytest.approx([0.02, 0.01])
    trainer(schedule=lambda step: 1 / (1 + step)).resume(tmp_path / "a")
