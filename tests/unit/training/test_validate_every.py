"""Evaluation every n steps: callbacks decide there, also after a restart."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback, Checkpoint, CSVLogger, EarlyStopping, Progress
from tests.unit.training.classifiers import X, Y, mlp, trainer

pytestmark = pytest.mark.usefixtures("on_numpy")


class Given(Trainer):
    """Trainer whose evaluation after step n returns the n-th of the given losses."""

    losses: tuple[float, ...] = ()
    evaluated: list[int]

    def evaluate(self, *args: Any, **options: Any) -> dict[str, Any]:
        self.evaluated = [*getattr(self, "evaluated", []), self.step]
        return {**super().evaluate(*args, **options), "loss": self.losses[self.step - 1]}


def given(*losses: float, callbacks: list[Callback]) -> Given:
    ours = Given(mlp(), "cross_entropy", callbacks=callbacks, progress=False, seed=0)
    ours.losses = losses
    return ours


def fit(ours: Trainer, epochs: int = 4, every: int = 2) -> Trainer:
    """Train with epochs of 3 steps."""
    data: Any = (X, Y)
    ours.fit(data, validation=data, epochs=epochs, batch_size=16, validate_every=every)
    return ours


def test_early_stopping_counts_evaluations() -> None:
    # steps evaluated: 2, 3 (epoch), 4, 6 (also an epoch), 8, 9 (epoch), ...
    stop = EarlyStopping(patience=2)
    ours = fit(given(9, 5, 6, 4, 9, 7, 9, 8, 9, 9, 9, 9, callbacks=[stop]))
    assert ours.step == 9  # worse than at step 4 in the evaluations of steps 6, 8 and 9
    assert (stop.best.value, stop.waited) == (4.0, 3)
    assert ours.evaluated == [2, 3, 4, 6, 8, 9]


def test_training_stops_within_an_epoch() -> None:
    ours = fit(given(*range(1, 13), callbacks=[EarlyStopping(patience=1)]), every=1)
    assert (ours.step, ours.epoch) == (3, 0)


def test_other_values_are_decided_on_after_epochs() -> None:
    stop = EarlyStopping("loss", patience=2)
    fit(trainer(callbacks=[stop]), epochs=2)
    assert stop.waited == 0
    assert stop.state_dict()["decided"] == 6


def test_the_best_checkpoint_is_of_an_evaluation_within_an_epoch(tmp_path: Path) -> None:
    save = Checkpoint(tmp_path, monitor="val_loss")
    fit(given(9, 9, 9, 1, 9, 9, 9, 9, 9, 9, 9, 9, callbacks=[save]))
    assert trainer(optimizer="adamw").resume(tmp_path / "best").step == 4
    assert trainer(optimizer="adamw").resume(tmp_path / "last").step == 12


class Stop(Callback):
    """Ends the process, as far as a test can."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if trainer.step == self.step + 1:
            raise RuntimeError("killed")


@pytest.mark.parametrize("every", [2, 3])
def test_counters_after_a_restart_are_exact(every: int, tmp_path: Path) -> None:
    losses = (5, 4, 6, 3, 9, 9, 2, 9, 9, 9, 9, 9)

    def callbacks(folder: Path) -> list[Callback]:
        return [
            EarlyStopping(patience=3),
            Checkpoint(folder, every_steps=1, monitor="val_loss"),
            CSVLogger(folder / "log.csv", every_steps=1),
        ]

    whole = fit(given(*losses, callbacks=callbacks(tmp_path / "whole")), every=every)
    for step in range(1, whole.step):
        folder = tmp_path / f"{step}"
        with pytest.raises(RuntimeError, match="killed"):
            fit(given(*losses, callbacks=[*callbacks(folder), Stop(step)]), every=every)
        again = given(*losses, callbacks=callbacks(folder)).resume(folder / "last")
        assert again.step == step
        fit(again, every=every)
        assert again.history.steps == whole.history.steps
        assert [c.state_dict() for c in again.callbacks] == [
            c.state_dict() for c in whole.callbacks
        ]
        logs = [(each / "log.csv").read_text() for each in (folder, tmp_path / "whole")]
        assert logs[0] == logs[1]


def test_an_evaluation_at_the_end_of_an_epoch_is_used_for_the_epoch() -> None:
    ours = fit(given(*range(1, 13), callbacks=[]), epochs=2, every=3)
    assert ours.evaluated == [3, 6]
    for step, epoch in zip((2, 5), ours.history.epochs, strict=True):
        values = {k: v for k, v in ours.history.steps[step].items() if k.startswith("val_")}
        assert values
        assert values.items() <= epoch.items()


def test_a_callback_of_another_training_decides_anew() -> None:
    stop = EarlyStopping(patience=9)
    fit(given(*range(1, 13), callbacks=[stop]), epochs=1, every=3)
    fit(given(*range(1, 13), callbacks=[stop]), epochs=1, every=2)
    assert stop.waited == 1  # step 2 is the best, step 3 is not


def test_logs_and_progress_show_evaluations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = CSVLogger(tmp_path / "log.csv", every_steps=3)
    fit(trainer(callbacks=[log, Progress()], metrics=["accuracy"]), epochs=2, every=2)
    with open(tmp_path / "log.csv", newline="", encoding="utf-8") as file:
        rows = {int(float(row["step"])): row for row in csv.DictReader(file)}
    assert list(rows) == [2, 3, 4, 6]
    assert [bool(rows[step]["val_accuracy"]) for step in rows] == [True, False, True, True]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [
        [f"epoch {epoch}", f"step {step}"]
        for epoch, step in [(1, 2), (1, 3), (2, 4), (2, 6), (2, 6)]
    ]
    assert all("val_loss" in line and "val_accuracy" in line for line in lines)


def test_a_column_that_comes_later_extends_the_log(tmp_path: Path) -> None:
    log = CSVLogger(tmp_path / "log.csv", every_steps=1)
    fit(trainer(callbacks=[log]), epochs=1, every=2)
    with open(tmp_path / "log.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [bool(row["val_loss"]) for row in rows] == [False, True, False]
    assert all(row["loss"] for row in rows)
