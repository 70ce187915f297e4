"""Overridden parts of trainers and optimizers, and gradients seen by callbacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import nn
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer, global_norm
from ember_ml.training.callbacks import Callback
from ember_ml.training.optimizer import SGD, Adam
from tests.unit.training.classifiers import X, Y, mlp, trainer

OPTIONS: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.1, "progress": False}


class Doubled(SGD):
    """Steps twice as far."""

    calls = 0

    def step(self, grads):
        self.calls += 1
        given = grads.values() if isinstance(grads, dict) else grads
        super().step([None if g is None else g * 2.0 for g in given])


def test_an_overridden_step_is_called(backend: str) -> None:
    model = mlp()
    ours = trainer(model, optimizer=Doubled(model), learning_rate=0.1)
    ours.fit((X, Y), steps=3)
    assert ours.optimizer.calls == 3
    plain = trainer(optimizer="sgd", learning_rate=0.2)
    plain.fit((X, Y), steps=3)
    assert np.allclose(ours.history.losses, plain.history.losses, atol=1e-5)


def test_a_step_replaced_on_the_object_is_called(backend: str) -> None:
    ours = trainer()
    calls = []
    step = ours.optimizer.step
    ours.optimizer.step = lambda grads: calls.append(step(grads))
    ours.fit((X, Y), steps=2)
    assert len(calls) == 2


class Slow(Adam):
    """Halves the update."""

    def update_step(self, k, params, grads, state, options, values):
        before = k.copy(params)
        params, state = super().update_step(k, params, grads, state, options, values)
        return k.lerp_(before, params, 0.5), state


def test_an_overridden_update_is_used(backend: str) -> None:
    model = mlp()
    ours = trainer(model, optimizer=Slow(model), learning_rate=0.02)
    ours.fit((X, Y), steps=3)
    plain = trainer(learning_rate=0.01)
    plain.fit((X, Y), steps=3)
    assert np.allclose(ours.history.losses, plain.history.losses, atol=1e-5)


class Curriculum(Trainer):
    """Scales the loss by an attribute that changes, and counts calls."""

    factor = 1.0
    calls = 0

    def compute(self, batch):
        self.calls += 1
        loss, outputs = super().compute(batch)
        return loss * self.factor, outputs

    def train_step(self, batch):
        record = super().train_step(batch)
        self.factor = 0.0
        return record


def test_overridden_compute_and_train_step_run_at_every_step(backend: str) -> None:
    ours = Curriculum(mlp(), "cross_entropy", **OPTIONS)
    losses = ours.fit((X, Y), steps=3).losses
    assert ours.calls == 3
    assert losses[0] > 0
    assert losses[1:] == [0.0, 0.0]


class Watch(Callback):
    def __init__(self) -> None:
        self.seen: list[dict[str, np.ndarray]] = []
        self.norms: list[float] = []

    def on_gradients(self, trainer, gradients) -> None:
        self.seen.append({name: g.numpy() for name, g in gradients.items()})
        self.norms.append(float(global_norm(gradients)))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_callbacks_see_the_gradients_of_the_update(accumulate: int, backend: str) -> None:
    watch = Watch()
    batch = array(X[:24]), array(Y[:24])
    ours = trainer(optimizer="sgd", callbacks=[watch], clip_norm=1e-3, accumulate=accumulate)
    model = ours.model
    _, wanted = nn.value_and_grad(model, lambda: ours.compute(batch)[0])()
    for _ in range(accumulate):
        record = ours.train_step(batch)
    assert list(watch.seen[0]) == [name for name, _ in model.named_parameters()]
    for name, gradient in wanted.items():
        assert np.allclose(watch.seen[0][name], gradient.numpy(), atol=1e-6)
    assert record["grad_norm"] == pytest.approx(watch.norms[0], rel=1e-5)


def test_records_have_the_norm_before_clipping(backend: str) -> None:
    watched, plain = trainer(callbacks=[Watch()], clip_norm=0.1), trainer(clip_norm=0.1)
    norms = [
        [record["grad_norm"] for record in ours.fit((X, Y), steps=3).steps]
        for ours in (watched, plain)
    ]
    assert np.allclose(*norms, rtol=1e-4)
    assert norms[0][0] > 0.1
