"""Typed code as a user writes it: `tests/typing/check.py` checks it against the built wheel."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np

import ember_ml
from ember_ml import GradientTape, nn, ops
from ember_ml.autodiff import grad, value_and_grad
from ember_ml.configs.layers.sequence_mixing import MambaConfig
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import Module, Parameter, layers, models
from ember_ml.nn.tensor import Tensor, array
from ember_ml.registry import create
from ember_ml.training import Trainer, TrainerConfig


class Scale(Module):
    """Multiplies each feature by a learned factor."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.factor = Parameter(ops.ones((features,)))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


def loss(x: Tensor, y: Tensor) -> Tensor:
    return ops.mean((x - y) ** 2)


def tensors() -> Tensor:
    x = array([[1.0, 2.0], [3.0, 4.0]])
    y = ops.softmax(x @ x.T / 2, axis=-1)
    shape: tuple[int, ...] = y.shape
    host: np.ndarray = ops.concat([y, y], axis=0).numpy()
    assert host.shape == (2 * shape[0], shape[1])
    return assert_type(ops.where(y > 0.5, y, 0.0), Tensor)


def gradients(x: Tensor) -> Tensor:
    slope = assert_type(grad(loss)(x, ops.zeros_like(x)), Tensor)
    value, first = assert_type(value_and_grad(loss)(x, slope), tuple[Tensor, Tensor])
    with GradientTape() as tape:
        tape.watch(x)
        total: Tensor = ops.sum(x * x)
    again: Tensor | None = tape.gradient(total, x)
    assert again is not None
    return value + first.sum() + again.sum()


def train(folder: Path) -> nn.Sequential:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((16, 4)).astype(np.float32)
    model = nn.Sequential(layers.Dense(4, 4), Scale(4))
    out = assert_type(Scale(4)(array(x)), Tensor)
    trainer = Trainer(model, "mse", optimizer="adamw", learning_rate=1e-2, progress=False)
    history = trainer.fit(DataLoader(ArrayDataset(x, out.numpy()), 8), epochs=1)
    losses: list[float] = history.losses
    assert len(losses) == 2
    assert trainer.config.learning_rate == TrainerConfig(learning_rate=1e-2).learning_rate
    ember_ml.save(model, folder)
    return model


def language_model() -> list[list[int]]:
    mixer = assert_type(create("layers/mamba", 8), layers.Mamba)
    assert isinstance(MambaConfig(features=8).create(), type(mixer))
    model = models.LanguageModel("attention swiglu", vocab_size=16, hidden_size=16)
    logits = assert_type(model(array([[1, 2, 3]])), Tensor)
    assert logits.shape == (1, 3, 16)
    tokens: Tensor = model.generate([1, 2, 3], max_new_tokens=2)
    return [list(map(int, tokens.tolist()))]


def main(folder: Path) -> None:
    assert gradients(tensors()).shape == ()
    model = train(folder)
    ember_ml.save(layers.Dense(2, 2), folder / "dense")
    assert_type(ember_ml.load(folder / "dense"), Module)
    again = assert_type(ember_ml.load(folder, into=model), nn.Sequential)
    assert again.parameters()
    assert language_model()
