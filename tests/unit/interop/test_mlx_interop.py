"""Ember modules in programs of MLX, and modules of MLX in Ember."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn
import mlx.optimizers
import numpy as np
import pytest
from mlx.utils import tree_flatten

from ember_ml import nn, ops, registry
from ember_ml.backend import use_backend
from ember_ml.interop import from_mlx, to_mlx
from ember_ml.nn import layers
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer
from tests.conformance import test_layers
from tests.examples_of import inputs_of


@pytest.fixture(autouse=True)
def on_mlx():
    with use_backend("mlx"):
        ops.random.set_seed(0)
        yield


@pytest.mark.parametrize("entry", registry.available("layers"), ids=lambda entry: entry.name)
def test_outputs_gradients_and_names(entry: registry.Entry) -> None:
    layer = test_layers.make(entry)
    x = inputs_of(layer)
    theirs = to_mlx(layer)
    assert {name for name, _ in tree_flatten(theirs.parameters())} >= set(layer.state_dict())
    np.testing.assert_allclose(
        np.array(theirs(mx.array(x))), layer(array(x)).numpy(), rtol=1e-4, atol=1e-5
    )
    if not layer.parameters(trainable=True):
        return
    gradients = nn.value_and_grad(layer, lambda: (layer(array(x)) ** 2).mean())()[1]
    compute = mlx.nn.value_and_grad(theirs, lambda x: (theirs(x) ** 2).mean())
    for name, gradient in tree_flatten(compute(mx.array(x))[1]):
        np.testing.assert_allclose(
            np.array(gradient), gradients[name].numpy(), rtol=1e-3, atol=1e-5, err_msg=name
        )


def test_an_optimizer_of_mlx_trains_the_ember_module() -> None:
    model = LanguageModel("gru swiglu", 7, 8)
    theirs = to_mlx(model)
    tokens = mx.array(np.arange(12).reshape(2, 6) % 7)
    loss = mlx.nn.value_and_grad(theirs, lambda x: mx.logsumexp(theirs(x), axis=-1).sum())
    before = model.head.weight.numpy().copy()
    value, gradients = loss(tokens)
    mlx.optimizers.SGD(0.01).update(theirs, gradients)
    assert loss(tokens)[0] < value
    expected = before - 0.01 * np.array(gradients["head"]["weight"])
    np.testing.assert_allclose(theirs.ember.head.weight.numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model(tokens).numpy(), np.array(theirs(tokens)), rtol=1e-5)


def test_modes_and_buffers() -> None:
    theirs = to_mlx(layers.BatchNorm(3))
    reference = mlx.nn.BatchNorm(3)
    x = mx.array(np.random.default_rng(0).standard_normal((16, 3), np.float32) * 3.0 + 1.0)
    for module in (theirs, reference):
        module.train()
        module(x)
        module.eval()
    assert not theirs.ember.training
    np.testing.assert_allclose(np.array(theirs(x)), np.array(reference(x)), rtol=1e-4, atol=1e-5)


def test_an_mlx_module_trains_in_ember_as_in_mlx() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((32, 4), np.float32), rng.integers(0, 3, 32)

    def perceptron() -> mlx.nn.Module:
        mx.random.seed(0)
        return mlx.nn.Sequential(
            mlx.nn.Linear(4, 8), mlx.nn.BatchNorm(8), mlx.nn.GELU(), mlx.nn.Linear(8, 3)
        )

    ours, theirs = from_mlx(perceptron()), perceptron()
    optimizer = mlx.optimizers.SGD(0.1)

    def loss(x, y):
        return mlx.nn.losses.cross_entropy(theirs(x), y, reduction="mean")

    expected = []
    for _ in range(4):
        value, gradients = mlx.nn.value_and_grad(theirs, loss)(mx.array(x), mx.array(y))
        optimizer.update(theirs, gradients)
        expected.append(float(value))
    trainer = Trainer(ours, "cross_entropy", optimizer="sgd", learning_rate=0.1, progress=False)
    history = trainer.fit((x, y), steps=4, batch_size=32)
    np.testing.assert_allclose(history.losses, expected, rtol=1e-4)
    for name, value in tree_flatten(theirs.parameters()):
        np.testing.assert_allclose(
            ours.state_dict()[name].numpy(), np.array(value), rtol=1e-3, atol=1e-5
        )


def test_errors() -> None:
    with use_backend("numpy"):
        model = layers.Dense(2, 2)
    with pytest.raises(TypeError, match=r"weight of Dense is on numpy; call to_backend\('mlx'\)"):
        to_mlx(model)
    with pytest.raises(TypeError, match="expected an Ember module, got Linear"):
        to_mlx(mlx.nn.Linear(2, 2))
    with pytest.raises(TypeError, match=r"expected an mlx.nn.Module, got Dense"):
        from_mlx(model)


def test_the_mlx_module_gets_the_values_of_ember() -> None:
    theirs = mlx.nn.Linear(4, 2)
    layer = from_mlx(theirs)
    layer.weight.assign(np.ones((2, 4), "float32"))
    assert layer.module is theirs
    assert mx.all(theirs.weight == 1.0)
    with pytest.raises(TypeError, match="Linear of from_mlx runs on the MLX backend only"):
        layer.to_backend("numpy")(np.ones((3, 4), "float32"))
