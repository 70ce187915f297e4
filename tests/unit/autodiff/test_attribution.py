"""Influence of tensors on a result: which token, head or expert mattered."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import GradientTape, nn, ops
from ember_ml.nn import layers, tensor

pytestmark = pytest.mark.usefixtures("backend")


def mlp(x):
    """A smooth function with interactions."""
    w = tensor.array(np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32))
    return ops.sum(ops.tanh(ops.matmul(x, w)) ** 2) + x[0] * x[3]


def mlp_by_hand(x):
    w = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32).astype(np.float64)
    return np.sum(np.tanh(x @ w) ** 2) + x[0] * x[3]


def recorded(function, x):
    with GradientTape(causal=True) as tape:
        tape.watch(x)
        y = function(x)
    return tape.causal, y


X = np.linspace(-0.8, 1.1, 6)
BASE = np.float64([0.1, 0.0, 0.2, -0.3, 0.0, 0.4])


def test_integrated_gradients():
    """Completeness, and the integral of central differences along the line."""
    x = tensor.array(X.astype(np.float32))
    context, y = recorded(mlp, x)
    parts = context.influence(x, y, method="integrated_gradients", baseline=BASE.astype("float32"))
    assert float(ops.sum(parts)) == pytest.approx(mlp_by_hand(X) - mlp_by_hand(BASE), abs=1e-5)
    expected = np.zeros(6)
    grid = (np.arange(400) + 0.5) / 400
    for share in grid:
        at = BASE + share * (X - BASE)
        for part in range(6):
            step = 1e-5 * np.eye(6)[part]
            slope = (mlp_by_hand(at + step) - mlp_by_hand(at - step)) / 2e-5
            expected[part] += slope * (X - BASE)[part] / len(grid)
    np.testing.assert_allclose(parts.numpy(), expected, atol=1e-4)


def test_occlusion():
    x = tensor.array(X.astype(np.float32))
    context, y = recorded(mlp, x)
    parts = context.influence(x, y, method="occlusion").numpy()
    for part in range(6):
        without = np.where(np.arange(6) == part, 0.0, X)
        assert parts[part] == pytest.approx(mlp_by_hand(X) - mlp_by_hand(without), abs=1e-5)


@pytest.mark.parametrize("method", ["integrated_gradients", "occlusion"])
def test_which_token(method):
    """An output at position 2 depends on the tokens 0 to 2 only, and most on the named one."""
    ops.random.set_seed(0)
    table = layers.Embedding(10, 4)
    mix = layers.CausalAttention(4, num_heads=2)
    tokens = tensor.array([[3, 1, 4, 1, 5]])
    with GradientTape(causal=True) as tape:
        tape.causal.register_module(table)
        embedded = table(tokens)
        y = mix(embedded)
    parts = tape.causal.influence(
        tape.causal.event_of(embedded), y, method=method, output=(0, 2, 1), axis=1
    ).numpy()
    assert parts.shape == (5,)
    assert np.all(np.abs(parts[:3]) > 1e-7)
    np.testing.assert_allclose(parts[3:], 0.0, atol=1e-7)
    assert tape.causal.event_of(embedded).module == "Embedding"
    if method == "integrated_gradients":
        empty = mix(ops.zeros_like(embedded))
        want = float(y[0, 2, 1]) - float(empty[0, 2, 1])
        assert parts.sum() == pytest.approx(want, abs=1e-4)


def heads(x, gain):
    """Return outputs of three heads, of which the last is multiplied by 5."""
    outputs = ops.stack([ops.tanh(x), ops.sin(x), x * x])  # (heads, features)
    return outputs * gain


@pytest.mark.parametrize("method", ["integrated_gradients", "occlusion"])
def test_which_head_or_expert(method):
    """The heads are intermediate results, and the answer is known: their parts of a sum."""
    x = tensor.array(np.float32([0.5, -1.0, 2.0]))
    gain = tensor.array(np.float32([[1.0], [0.5], [5.0]]))
    context, (parts, y) = recorded(lambda x: (h := heads(x, gain), ops.sum(h)), x)
    found = context.influence(parts, y, method=method, axis=0).numpy()
    np.testing.assert_allclose(found, parts.numpy().sum(1), rtol=1e-5)
    assert found.argmax() == 2


@pytest.mark.parametrize("method", ["integrated_gradients", "occlusion"])
def test_which_head_of_an_attention_layer(method):
    """The output projection is linear, so a head contributes its columns times its output."""
    ops.random.set_seed(0)
    layer = layers.CausalAttention(8, num_heads=2)
    x = ops.random.normal((1, 5, 8), seed=1)
    with GradientTape(causal=True) as tape:
        y = layer(x)
    by_head = [event for event in tape.causal.events if event.shapes == ((1, 5, 2, 4),)][-1]
    found = tape.causal.influence(by_head, y, method=method, output=(0, 3, 6), axis=2).numpy()
    weight = layer.out.weight.numpy()[6].reshape(2, 4)
    np.testing.assert_allclose(
        found, (by_head.outputs[0].numpy()[0, 3] * weight).sum(1), rtol=1e-4, atol=1e-6
    )


def test_which_expert_of_a_mixture():
    """Experts are constants, so a gate contributes its weight times the expert's constant."""
    gate = layers.Dense(3, 4)
    experts = tensor.array(np.float32([1.0, 10.0, -3.0, 0.5]))
    x = tensor.array(np.float32([[0.2, -0.4, 0.9]]))
    with GradientTape(causal=True) as tape:
        weights = ops.softmax(gate(x), axis=-1)
        y = ops.sum(weights * experts)
    found = tape.causal.influence(weights, y, method="occlusion", axis=-1).numpy()
    np.testing.assert_allclose(found, (weights.numpy() * experts.numpy())[0], rtol=1e-5)


@pytest.mark.parametrize("method", ["integrated_gradients", "occlusion"])
def test_which_expert_of_a_layer(method):
    """The output is linear in the gates, so the chosen experts explain all of it."""
    ops.random.set_seed(0)
    layer = layers.MoEMLP(6, num_experts=4)
    x = ops.random.normal((1, 3, 6), seed=1)
    with GradientTape(causal=True) as tape:
        tape.causal.register_module(layer)
        y = layer(x)
    router = [event for event in tape.causal.events if event.module == "router"]
    gates = [event for event in router if event.shapes == ((3, 2),)][-1]
    parts = tape.causal.influence(gates, y, method=method, output=(0, 1, 2), axis=(0, 1)).numpy()
    assert parts[1].sum() == pytest.approx(float(y[0, 1, 2]), abs=1e-5)
    assert np.abs(parts[1]).min() > 1e-6
    np.testing.assert_allclose(parts[[0, 2]], 0.0, atol=1e-7)


def test_module_paths():
    model = nn.Sequential(layers.Dense(2, 3), nn.Sequential(layers.Dense(3, 1)))
    with GradientTape(causal=True) as tape:
        tape.causal.register_module(model)
        model(ops.ones((1, 2)))
    assert [event.module for event in tape.causal.events] == ["0", "1.0"]
    assert all(module._hooks is None for module in model.modules())


def test_errors():
    x = tensor.array(X.astype(np.float32))
    context, y = recorded(lambda x: x * x, x)
    with pytest.raises(ValueError, match="name the method, method='integrated_gradients' or"):
        context.influence(x, y, output=0)
    with pytest.raises(ValueError, match=r"the result has shape \(6,\); name one element"):
        context.influence(x, y, method="occlusion")
    with pytest.raises(ValueError, match="no recorded op reads the source"):
        context.influence(ops.ones(3), y, method="occlusion", output=0)
    with pytest.raises(ValueError, match="not computed by a recorded op"):
        context.influence(x, x, method="occlusion", output=0)
    with pytest.raises(TypeError, match="expected two spikes, or tensors and ops"):
        context.influence(1.0, y, method="occlusion", output=0)
    with pytest.raises(ValueError, match="axis 2 is out of range"):
        context.influence(x, y, method="occlusion", output=0, axis=2)
    with pytest.raises(ValueError, match=r"the baseline \(5,\) does not fit the source \(6,\)"):
        context.influence(x, y, method="occlusion", output=0, baseline=np.zeros(5, "float32"))
    with pytest.raises(ValueError, match="steps must be at least 1"):
        context.influence(x, y, method="integrated_gradients", output=0, steps=0)
