"""Metrics of the training batches, compared with the model's own outputs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml.backend import use_backend
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import layers
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback, Checkpoint, CSVLogger, EarlyStopping, Progress
from tests.unit.training.classifiers import X, Y, mlp, trainer


def loader(size: int = 16) -> DataLoader:
    return DataLoader(ArrayDataset(X[:40], Y[:40]), size)


def expected(model: nn.Module, batches: list[tuple[Any, Any]]) -> float:
    """Return the accuracy of the outputs on some batches, in NumPy."""
    right = [model(x).numpy().argmax(-1) == y.numpy() for x, y in batches]
    return float(np.concatenate(right).mean())


@pytest.mark.parametrize(
    "options",
    [{}, {"accumulate": 2}, {"precision": "float16"}, {"clip_norm": 1.0, "ema": 0.9}],
    ids=str,
)
def test_steps_and_epochs_have_the_metrics_of_their_batches(backend: str, options: Any) -> None:
    ours = trainer(metrics=["accuracy"], train_metrics=True, seed=0, **options)
    everything: list[tuple[Any, Any]] = list(loader().batches(ours.dtype))
    group: list[tuple[Any, Any]] = []
    values = []
    for batch in everything * 2:  # compiled from the second batch of a shape on, where it is
        group.append(batch)
        before = expected(ours.model, group)
        record = ours.train_step(batch)
        if record is not None:
            if "precision" in options:
                assert record["accuracy"] == pytest.approx(before, abs=0.1)
            else:
                assert record["accuracy"] == pytest.approx(before)
            values.append(record["accuracy"])
            group = []
    assert len(set(values)) > 1


def test_the_epoch_covers_all_batches_by_their_size(backend: str) -> None:
    ours = trainer(metrics=["accuracy", "f1"], train_metrics=True, optimizer="sgd")
    history = ours.fit(loader(), validation=loader(), epochs=2)
    sizes = [16, 16, 8]
    steps = [record["accuracy"] for record in history.steps]
    for epoch, value in enumerate(history.column("accuracy")):
        own = steps[3 * epoch : 3 * epoch + 3]
        assert value == pytest.approx(np.average(own, weights=sizes))
    assert len(history.column("val_accuracy")) == len(history.column("f1")) == 2
    plain = trainer(metrics=["accuracy", "f1"], optimizer="sgd")
    others = plain.fit(loader(), validation=loader(), epochs=2)
    assert others.losses == history.losses
    assert others.column("val_f1") == history.column("val_f1")
    assert not others.column("accuracy")


def test_evaluations_within_an_epoch_do_not_disturb_the_metrics() -> None:
    with use_backend("numpy"):
        results = []
        for every in (None, 1):
            ours = trainer(metrics=["accuracy"], train_metrics=True, seed=0)
            data: Any = (X, Y)
            ours.fit(data, validation=data, epochs=2, batch_size=20, validate_every=every)
            results.append([record["accuracy"] for record in ours.history.steps])
            results.append(ours.history.column("accuracy"))
        assert results[:2] == results[2:]


def test_several_outputs_and_functions(backend: str) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = layers.Dense(5, 3), layers.Dense(5, 1)

        def forward(self, x: Any) -> dict[str, Any]:
            return {"a": self.a(x), "b": self.b(x)}

    def error(output: Any, target: Any) -> Any:
        return ops.abs(output - target)

    ops.random.set_seed(0)
    ours = Trainer(
        Two(),
        {"a": "cross_entropy", "b": "mse"},  # type: ignore[arg-type]
        metrics={"a": ["accuracy"], "b": [error]},
        train_metrics=True,
        optimizer="sgd",
        progress=False,
    )
    first = {name: x.numpy() for name, x in ours.model(X).items()}
    targets = {"a": Y, "b": X[:, :1]}
    history = ours.fit({"inputs": X, "targets": targets}, batch_size=48, epochs=2)
    assert history.column("a_accuracy")[0] == pytest.approx((first["a"].argmax(-1) == Y).mean())
    assert history.column("b_error")[0] == pytest.approx(
        np.abs(first["b"] - X[:, :1]).mean(), rel=1e-5
    )


class Kill(Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if trainer.step == self.step + 1:
            raise RuntimeError("killed")


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_restart_within_an_epoch_is_exact(step: int, tmp_path: Path) -> None:
    def run(*callbacks: Callback) -> Trainer:
        options: Any = {"metrics": ["accuracy", "f1", "auroc"], "accumulate": 2, "seed": 0}
        return trainer(callbacks=callbacks, train_metrics=True, **options)

    with use_backend("numpy"):
        whole = run().fit((X, Y), epochs=3, batch_size=8)
        killed = run(Checkpoint(tmp_path, every_steps=1), Kill(step))
        with pytest.raises(RuntimeError, match="killed"):
            killed.fit((X, Y), epochs=3, batch_size=8)
        again = run().resume(tmp_path / "last")
        history = again.fit((X, Y), epochs=3, batch_size=8)
        assert history.steps == whole.steps
        for name in ("accuracy", "f1", "auroc"):
            assert history.column(name) == whole.column(name)


def test_monitors_logs_and_progress_use_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with use_backend("numpy"):
        stop = EarlyStopping("accuracy", mode="max", patience=9)
        save = Checkpoint(tmp_path, monitor="accuracy", mode="max")
        logs = [
            CSVLogger(tmp_path / "steps.csv", every_steps=1),
            CSVLogger(tmp_path / "epochs.csv"),
        ]
        ours = trainer(
            metrics=["accuracy"], train_metrics=True, callbacks=[stop, save, *logs, Progress()]
        )
        history = ours.fit((X, Y), epochs=3, batch_size=16)
        assert stop.best.value == save.best.value == max(history.column("accuracy"))
        for log, records in zip(logs, (history.steps, history.epochs), strict=True):
            with open(log.path, newline="", encoding="utf-8") as file:
                column = [float(row["accuracy"]) for row in csv.DictReader(file)]
            assert column == [record["accuracy"] for record in records]
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 3
        assert all("  accuracy " in line for line in lines)


def test_what_cannot_be_measured_is_an_error() -> None:
    def loss(output: Any, target: Any) -> Any:
        return ops.abs(output[:, 0] - target)

    with use_backend("numpy"):
        with pytest.raises(ValueError, match="train_metrics=True needs metrics"):
            trainer(train_metrics=True)
        with pytest.raises(ValueError, match="must not be named 'loss'"):
            trainer(metrics=[loss], train_metrics=True)
        unknown = trainer(metrics=["accuracy"], callbacks=[EarlyStopping("accuracy")])
        with pytest.raises(ValueError, match="monitors 'accuracy', but an epoch has no such value"):
            unknown.fit((X, Y))


def test_skipped_batches_are_not_measured() -> None:
    bad = X.copy()
    bad[16:32] = np.nan
    with use_backend("numpy"):
        ours = trainer(mlp(), metrics=["accuracy"], train_metrics=True, on_nonfinite="skip")
        with pytest.warns(UserWarning, match="skipped"):
            history = ours.fit(DataLoader(ArrayDataset(bad, Y), 16), epochs=1)
    assert ["accuracy" in record for record in history.steps] == [True, False, True]
    first, _, last = history.steps
    assert history.column("accuracy") == [pytest.approx((first["accuracy"] + last["accuracy"]) / 2)]


def test_other_data_starts_the_metrics_of_an_epoch_anew() -> None:
    with use_backend("numpy"):
        ours = trainer(metrics=["accuracy"], train_metrics=True, seed=0)
        ours.fit((X, Y), steps=1, batch_size=16)
        history = ours.fit((X[:32], Y[:32]), epochs=1, batch_size=16)
        values = [record["accuracy"] for record in history.steps]
        assert history.column("accuracy") == [pytest.approx(sum(values[1:]) / 2)]
        assert len(values) == 3
