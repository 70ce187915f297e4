"""Inputs of every registered layer and model: arrays of every framework, and float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops, registry
from ember_ml.backend import available, use_backend
from ember_ml.nn.sequence_module import SequenceModule
from ember_ml.nn.tensor import array
from ember_ml.registry import Entry
from tests.backends import has_dtype, is_lazy, with_dtype
from tests.conformance import test_layers, test_models
from tests.conformance.test_layers import STEPPED
from tests.examples_of import inputs_of

COMPONENTS = [*registry.available("layers"), *registry.available("models")]
PRECISE = with_dtype("float64")

of_each = pytest.mark.parametrize("entry", COMPONENTS, ids=lambda entry: entry.name)


def make(entry: Entry) -> tuple[Any, np.ndarray]:
    """Return the component in inference mode, and an input."""
    if entry.kind == "layers":
        layer = test_layers.make(entry)
        return layer, inputs_of(layer)
    model = test_models.make(entry).eval()
    return model, test_models.data(model)[0]


def arrays(x: np.ndarray) -> list[Any]:
    """Return a NumPy array as an array of each framework, and as nested lists."""
    natives = []
    for name in available():
        with use_backend(name):
            natives.append(array(x).native)
    return [*natives, x.tolist()]


@of_each
def test_arrays_of_every_framework(entry: Entry, backend: str) -> None:
    model, x = make(entry)
    expected = model(array(x))
    for given in arrays(x):
        result = model(given)
        where = type(given)
        assert (result.backend, result.dtype) == (expected.backend, expected.dtype), where
        assert result.shape == expected.shape, where
        if not is_lazy(backend):
            np.testing.assert_allclose(result.numpy(), expected.numpy(), 1e-6, 1e-6)


@of_each
def test_float64_arrays_do_not_change_the_dtype(entry: Entry, backend: str) -> None:
    model, x = make(entry)
    if x.dtype.kind != "f" or not model.parameters():
        pytest.skip("no floating-point input, or no parameters that decide the dtype")
    wide = x.astype("float64")
    natives = [array(wide).native] if has_dtype(backend, "float64") else []
    for given in (wide, *natives):
        assert model(given).dtype.name == "float32"


def run(model: nn.Module, x: np.ndarray) -> list[np.ndarray]:
    """Return the output and the gradients of a model."""
    output = model(array(x))
    assert output.dtype.name == "float64"
    weights = array(np.cos(np.arange(output.size)).reshape(output.shape))
    if not model.parameters():
        return [output.numpy()]
    _, gradients = nn.value_and_grad(model, lambda: (model(array(x)) * weights).sum())()
    assert {gradient.dtype.name for gradient in gradients.values()} == {"float64"}
    return [output.numpy(), *[gradient.numpy() for gradient in gradients.values()]]


@of_each
def test_float64_models_compute_in_float64(entry: Entry) -> None:
    with use_backend(PRECISE[0]):
        model, x = make(entry)
        model.to("float64")
    x = x.astype("float64") if x.dtype.kind == "f" else x
    results = []
    for backend in PRECISE:
        with use_backend(backend):
            results.append(run(model.to_backend(backend), x))
    for other in results[1:]:
        for ours, theirs in zip(results[0], other, strict=True):
            scale = max(1.0, float(np.abs(ours).max()))
            np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0, atol=1e-11)


@pytest.mark.parametrize("entry", STEPPED, ids=lambda entry: entry.name)
def test_float64_steps_equal_the_parallel_form(entry: Entry) -> None:
    for backend in PRECISE[:1]:
        with use_backend(backend):
            layer = test_layers.make(entry).to("float64")
            x = array(test_layers.sequence(layer, 2, 6).astype("float64"))
            state, outputs = layer.initial_state(2), []
            for at in range(x.shape[1]):
                output, state = layer.step(x[:, at], state)
                outputs.append(output)
            stepped = ops.stack(outputs, axis=1)
            assert stepped.dtype.name == "float64"
            np.testing.assert_allclose(stepped.numpy(), layer(x).numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("entry", STEPPED, ids=lambda entry: entry.name)
def test_steps_take_arrays_of_every_framework(entry: Entry, backend: str) -> None:
    layer = test_layers.make(entry)
    x = test_layers.sequence(layer, 2, 1)[:, 0]
    expected, _ = layer.step(array(x), layer.initial_state(2))
    wide = [x.astype("float64")] if x.dtype.kind == "f" else []
    for given in (*arrays(x), *wide):
        output, _ = layer.step(given, layer.initial_state(2))
        assert (output.backend, output.dtype) == (expected.backend, expected.dtype), type(given)
        np.testing.assert_allclose(output.numpy(), expected.numpy(), 1e-5, 1e-5)


def test_a_step_may_name_its_input(backend: str) -> None:
    class Last(SequenceModule):
        def step(self, token, state):
            return token + state, token

    with use_backend(backend):
        one = ops.ones((1, 2))
        output, state = Last().step(token=one, state=one)
    assert (output == 2.0).all()
    assert state is one


@pytest.mark.parametrize("backend", PRECISE)
def test_a_tensor_keeps_its_dtype(backend: str) -> None:
    with use_backend(backend):
        layer = nn.layers.Dense(2, 3)
        assert layer(ops.ones((1, 2), dtype="float64")).dtype.name == "float64"  # as in an op


def test_mask_and_keyword_arguments_are_converted(backend: str) -> None:
    layer = nn.layers.GRU(4)
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    mask = np.array([[True, True, False], [True, True, True]])
    expected = layer(array(x.astype("float32")), array(mask))
    np.testing.assert_allclose(layer(x, mask=mask).numpy(), expected.numpy(), 1e-6, 1e-6)
    np.testing.assert_allclose(layer(x=x, mask=mask).numpy(), expected.numpy(), 1e-6, 1e-6)
