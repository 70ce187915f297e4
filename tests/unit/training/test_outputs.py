"""Several outputs, each with its loss and metrics; evaluation every n steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.training import TrainerConfig
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 3)).astype("float32")
CLASSES = (X[:, 0] > 0).astype("int64")
VALUES = X.sum(axis=1, keepdims=True)


class Heads(nn.Module):
    """Model with two outputs, as a dict or a tuple."""

    def __init__(self, as_dict: bool) -> None:
        self.first, self.second = nn.layers.Dense(3, 2), nn.layers.Dense(3, 1)
        self.as_dict = as_dict

    def forward(self, x: Tensor) -> Any:
        a, b = self.first(x), self.second(x)
        return {"a": a, "b": b} if self.as_dict else (a, b)


def expected(model: Heads) -> tuple[float, float]:
    logits, values = model.first(X).numpy(), model.second(X).numpy()
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -logs[np.arange(16), CLASSES].mean(), ((values - VALUES) ** 2).mean()


@pytest.mark.parametrize("as_dict", [True, False])
def test_losses_and_metrics_of_several_outputs(as_dict: bool, backend: str) -> None:
    ops.random.set_seed(0)
    model = Heads(as_dict)
    names = ("a", "b") if as_dict else ("0", "1")
    losses: Any = {"a": "cross_entropy", "b": "mse"} if as_dict else ["cross_entropy", "mse"]
    trainer = Trainer(
        model,
        losses,
        loss_weights={names[1]: 0.5},
        metrics={names[0]: ["accuracy"], names[1]: ["mae"]},
        optimizer={"type": "adam", "learning_rate": 0.1},
        progress=False,
    )
    targets: Any = dict(zip(names, (CLASSES, VALUES), strict=True)) if as_dict else None
    data = (X, targets) if as_dict else (X, (CLASSES, VALUES))
    first, second = expected(model)
    results = trainer.evaluate(data)
    assert results["loss"] == pytest.approx(first + 0.5 * second, rel=1e-5)
    assert results[f"{names[0]}_loss"] == pytest.approx(first, rel=1e-5)
    assert results[f"{names[1]}_loss"] == pytest.approx(second, rel=1e-5)
    history = trainer.fit(data, validation=data, epochs=8)
    assert history.losses[-1] < 0.5 * history.losses[0]
    predicted = model.first(X).numpy().argmax(axis=1)
    last = history.epochs[-1]
    assert last[f"val_{names[0]}_accuracy"] == pytest.approx((predicted == CLASSES).mean())
    assert f"val_{names[1]}_mae" in last
    assert f"val_{names[1]}_loss" in last


def test_configs_hold_several_losses_and_metrics() -> None:
    config = TrainerConfig(
        loss={"a": "cross_entropy", "b": {"type": "huber", "delta": 2.0}},
        loss_weights={"b": 0.5},
        metrics={"a": ["accuracy"]},
    )
    loaded = TrainerConfig.from_yaml(config.to_yaml())
    assert loaded == config
    trainer = Trainer(Heads(True), config=loaded, progress=False)
    assert [metric.name for metric in trainer.metrics] == ["a_accuracy"]
    assert TrainerConfig(loss="mse", metrics=["accuracy"]).metrics[0].component.endswith("accuracy")


def test_wrong_outputs_are_named() -> None:
    with pytest.raises(ValueError, match="loss_weights has 'c'"):
        Trainer(Heads(True), {"a": "mse"}, loss_weights={"c": 1.0}, progress=False)
    trainer = Trainer(Heads(True), {"c": "mse"}, progress=False)
    with pytest.raises(ValueError, match="'c', but the outputs have 'a', 'b'"):
        trainer.fit((X, {"c": VALUES}))


class Seen(Callback):
    """Records of the steps with an evaluation."""

    def __init__(self) -> None:
        self.steps: list[float] = []

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if "val_loss" in record:
            self.steps.append(record["step"])


def test_evaluation_every_n_steps(backend: str) -> None:
    ops.random.set_seed(0)
    seen = Seen()
    options: Any = {"optimizer": "sgd", "progress": False}
    trainer = Trainer(nn.layers.Dense(3, 1), "mse", callbacks=[seen], **options)
    trainer.fit((X, VALUES), validation=(X, VALUES), steps=7, batch_size=4, validate_every=3)
    assert seen.steps == [3.0, 6.0]
    assert [r["step"] for r in trainer.history.steps if "val_loss" in r] == [3.0, 6.0]
    ops.random.set_seed(0)
    plain = Trainer(nn.layers.Dense(3, 1), "mse", **options)
    plain.fit((X, VALUES), steps=7, batch_size=4)
    assert plain.history.losses == trainer.history.losses
    with pytest.raises(ValueError, match="validate_every"):
        trainer.fit((X, VALUES), validate_every=3)
