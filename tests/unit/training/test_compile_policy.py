"""When a trainer compiles its step, and that compilation does not change the results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml.autodiff.transforms.compiling import CompileCache
from ember_ml.training import Trainer
from ember_ml.training.trainer import compiled_step
from ember_ml.training.trainer.compiled_step import CompilePolicy

X = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")
Y = np.arange(8) % 3


def trained(**options: Any) -> Trainer:
    ops.random.set_seed(0)
    model = nn.Sequential(
        nn.layers.Dense(4, 8, activation="gelu"), nn.layers.Dropout(0.2), nn.layers.Dense(8, 3)
    )
    trainer = Trainer(model, "cross_entropy", seed=0, progress=False, **options)
    trainer.fit((X, Y), steps=6, batch_size=4)
    return trainer


def test_shapes_must_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_step, "REPEATS", 3)
    policy = CompilePolicy(at_once=False)
    short, long = ops.ones((2, 3)), ops.ones((2, 4))
    for _ in range(compiled_step.REPEATS):
        assert not policy.compiles((short, "name"), None)
    assert not policy.compiles((long, "name"), None)
    assert policy.compiles((short, "name"), None)
    assert not policy.compiles((long, "name"), None)


def test_enough_steps_must_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_step, "REMAINING", 200)
    policy = CompilePolicy(at_once=False)
    x = ops.ones((2, 3))
    for _ in range(compiled_step.REPEATS + 5):
        assert not policy.compiles(x, compiled_step.REMAINING - 1)
    assert policy.compiles(x, compiled_step.REMAINING)
    assert policy.compiles(x, 1)  # it is compiled now
    assert CompilePolicy(at_once=True).compiles(x, 1)


def test_a_short_run_compiles_nothing(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_step, "REPEATS", 50)
    calls = []
    run = CompileCache.__call__

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return run(self, *args, **kwargs)

    monkeypatch.setattr(CompileCache, "__call__", counted)
    trained()
    assert not calls


def test_the_change_to_compiled_steps_keeps_every_bit(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uncompiled = trained(compile=False)
    monkeypatch.setattr(compiled_step, "REPEATS", 2)
    monkeypatch.setattr(compiled_step, "REMAINING", 1)
    changed = trained()
    assert changed.history.losses == uncompiled.history.losses
    for name, value in changed.model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), uncompiled.model.state_dict()[name].numpy())
