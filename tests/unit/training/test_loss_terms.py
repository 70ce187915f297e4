"""Named losses of modules in the records of a trainer."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml.nn.auxiliary_losses import report_loss
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer
from ember_ml.training.callbacks import CSVLogger
from tests.backends import compiles


class Penalized(nn.Module):
    """Linear layer that reports the mean of its output, twice, and an unnamed loss."""

    def __init__(self, name: str = "height") -> None:
        self.dense = nn.layers.Dense(3, 1)
        self.term = name

    def forward(self, x):
        y = self.dense(x)
        if self.training:
            report_loss(0.25 * y.mean(), self.term)
            report_loss(0.75 * y.mean(), self.term)
            report_loss((self.dense.weight**2).sum() * 0.01)
        return y


def trainer(seed: int = 0, **options: Any) -> Trainer:
    ops.random.set_seed(seed)
    model = options.pop("model", None) or Penalized()
    return Trainer(model, "mse", optimizer="sgd", learning_rate=0.05, progress=False, **options)


def batches(count: int = 4, size: int = 6) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((count, size, 3)).astype(np.float32)
    return [(array(part), array(part.sum(1, keepdims=True))) for part in x]


def heights(options: dict[str, Any]) -> list[float]:
    return [record["height"] for record in trainer(**options).fit(batches(), epochs=2).steps]


def test_terms_are_parts_of_the_loss(backend: str) -> None:
    run, data = trainer(), batches(1)
    x, y = data[0]
    output = run.model(x).numpy().astype(np.float64)
    weight = run.model.dense.weight.numpy().astype(np.float64)
    record = run.train_step(data[0])
    assert record["height"] == pytest.approx(output.mean(), rel=1e-5, abs=1e-6)
    total = ((output - y.numpy()) ** 2).mean() + output.mean() + 0.01 * (weight**2).sum()
    assert record["loss"] == pytest.approx(total, rel=1e-5)
    assert run.loss_terms == ["height"]


@pytest.mark.parametrize("kind", ["compiled", "remat", "compiled gradients"])
def test_terms_do_not_depend_on_how_a_step_is_computed(kind: str, backend: str) -> None:
    expected = heights({"compile": False})
    if kind == "remat":
        inner = nn.Sequential(trainer().model)
        run = trainer(model=inner, remat=lambda name, module: isinstance(module, Penalized))
        assert run.remat.names == ["0"]
        ours = [record["height"] for record in run.fit(batches(), epochs=2).steps]
    else:
        if not compiles(backend):
            pytest.skip("the backend does not compile")
        accumulate = {"accumulate": 1} if kind == "compiled" else {"accumulate": 2}
        expected = heights({"compile": False, **accumulate})
        ours = heights({"compile": True, **accumulate})
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_accumulated_batches_have_the_mean_of_all_examples(backend: str) -> None:
    sizes, rng = (2, 5, 3), np.random.default_rng(1)
    parts = [rng.standard_normal((size, 3)).astype(np.float32) for size in sizes]
    data = [(array(x), array(x.sum(1, keepdims=True))) for x in parts]
    run = trainer(accumulate=3)
    whole = run.model(array(np.concatenate(parts))).numpy()
    record = [run.train_step(batch) for batch in data][-1]
    assert record["height"] == pytest.approx(whole.mean(), rel=1e-4, abs=1e-6)


def test_a_group_of_batches_resumes_with_its_terms(backend: str, tmp_path: Path) -> None:
    data = batches(3)
    whole, first = trainer(accumulate=3), trainer(accumulate=3)
    expected = [whole.train_step(batch) for batch in data][-1]
    for batch in data[:2]:
        assert first.train_step(batch) is None
    first.save(tmp_path / "run")
    second = trainer(seed=1, accumulate=3).resume(tmp_path / "run")
    assert second.train_step(data[2])["height"] == pytest.approx(expected["height"], rel=1e-5)


def test_records_of_epochs_and_log_files_have_them(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    run = trainer(callbacks=[CSVLogger(path)])
    history = run.fit(batches(), validation=batches(1), epochs=2)
    for epoch, record in enumerate(history.epochs):
        steps = [step["height"] for step in history.steps if step["epoch"] == epoch]
        assert record["height"] == pytest.approx(np.mean(steps))
        assert "val_height" not in record
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [float(row["height"]) for row in rows] == history.column("height")


@pytest.mark.parametrize("name", ["loss", "step", "grad_norm", "val_height"])
def test_a_name_must_not_be_a_key_of_the_records(name: str) -> None:
    with pytest.raises(ValueError, match=f"a loss named '{name}', which is a key of the records"):
        trainer(model=Penalized(name)).train_step(batches(1)[0])


def test_an_overridden_compute_may_record_terms(backend: str) -> None:
    class Twice(Trainer):
        def compute(self, batch):
            loss, outputs = super().compute(batch)
            return 2.0 * loss, outputs

    ops.random.set_seed(0)
    run = Twice(Penalized(), "mse", optimizer="sgd", learning_rate=0.05, progress=False)
    record, plain = run.train_step(batches(1)[0]), trainer().train_step(batches(1)[0])
    assert record["height"] == pytest.approx(plain["height"], rel=1e-6)
    assert record["loss"] == pytest.approx(2.0 * plain["loss"], rel=1e-6)
