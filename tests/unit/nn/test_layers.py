"""Tests of basic layers against torch.nn with the same weights."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from ember_ml import nn, ops
from ember_ml.nn import layers
from ember_ml.nn.tensor import array


def close(ours, theirs, tolerance: float = 2e-5) -> bool:
    return bool(abs(ours.numpy() - theirs.detach().numpy()).max() < tolerance)


def inputs(*shape: int):
    x = ops.random.normal(shape, seed=5)
    return x, torch.tensor(x.numpy(), requires_grad=True)


def twin_of(layer: nn.Module, twin: torch.nn.Module) -> torch.nn.Module:
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            value = ops.random.normal(parameter.shape, seed=len(name))
            parameter.assign(value)
            getattr(twin, name).copy_(torch.tensor(value.numpy()))
    return twin


CASES = [
    (lambda: layers.Dense(5, 3), lambda: torch.nn.Linear(5, 3), (4, 5)),
    (lambda: layers.Dense(5, 3, bias=False), lambda: torch.nn.Linear(5, 3, bias=False), (2, 1, 5)),
    (lambda: layers.Dense(1, 1), lambda: torch.nn.Linear(1, 1), (1,)),
    (lambda: layers.LayerNorm(6), lambda: torch.nn.LayerNorm(6), (2, 3, 6)),
    (lambda: layers.LayerNorm(6, bias=False), lambda: torch.nn.LayerNorm(6, bias=False), (3, 6)),
    (
        lambda: layers.LayerNorm(6, affine=False),
        lambda: torch.nn.LayerNorm(6, elementwise_affine=False),
        (1, 6),
    ),
    (lambda: layers.RMSNorm(6), lambda: torch.nn.RMSNorm(6, eps=1e-6), (2, 3, 6)),
    (lambda: layers.GroupNorm(2, 6), lambda: torch.nn.GroupNorm(2, 6), (3, 6, 5)),
    (lambda: layers.BatchNorm(6), lambda: torch.nn.BatchNorm1d(6), (7, 6)),
    (lambda: layers.BatchNorm(6, axis=1), lambda: torch.nn.BatchNorm1d(6), (3, 6, 4)),
    (lambda: layers.BatchNorm(6, axis=1), lambda: torch.nn.BatchNorm2d(6), (3, 6, 4, 2)),
]


@pytest.mark.parametrize(("make", "reference", "shape"), CASES)
def test_values_and_gradients(make, reference, shape, backend: str) -> None:
    layer = make()
    twin = twin_of(layer, reference())
    x, t = inputs(*shape)
    out = layer(x)
    weights = ops.random.normal(out.shape, seed=6)
    expected = twin(t)
    (expected * torch.tensor(weights.numpy())).sum().backward()
    assert close(out, expected)
    if layer.parameters():
        twin(t)  # each forward updates the running statistics
        _, grads = nn.value_and_grad(layer, lambda: (layer(x) * weights).sum())()
        for name, grad in grads.items():
            assert close(grad, getattr(twin, name).grad, 2e-4), name
    assert close(layer.eval()(x), twin.eval()(t))


def test_batch_norm_updates_running_statistics(backend: str) -> None:
    ours, theirs = layers.BatchNorm(3, momentum=0.3), torch.nn.BatchNorm1d(3, momentum=0.3)
    for seed in range(4):
        x = ops.random.normal((5, 3), 1.0, 2.0, seed=seed)
        ours(x)
        theirs(torch.tensor(x.numpy()))
    assert close(ours.running_mean, theirs.running_mean)
    assert close(ours.running_variance, theirs.running_var)


def test_embedding(backend: str) -> None:
    layer = layers.Embedding(7, 3, padding_index=2)
    symbols = array([[0, 2], [6, 2]])
    weight = torch.tensor(layer.weight.numpy(), requires_grad=True)
    out = F.embedding(torch.tensor(symbols.numpy()), weight, padding_idx=2)
    (out * out).sum().backward()
    expected = torch.where(torch.tensor(symbols.numpy() == 2)[..., None], 0.0, out)
    assert close(layer(symbols), expected)
    _, grads = nn.value_and_grad(layer, lambda: (layer(symbols) ** 2).sum())()
    assert close(grads["weight"], weight.grad)
    x = ops.random.normal((2, 3), seed=0)
    assert layer.attend(x).shape == (2, 7)
    with pytest.raises(
        TypeError, match="Embedding: the input must have an integer dtype, not float32"
    ):
        layer(ops.ones(2))
    with pytest.raises(
        ValueError, match=r"padding_index \(9\) must be less than num_embeddings \(7\)"
    ):
        layers.Embedding(7, 3, padding_index=9)


def test_mlp(backend: str) -> None:
    layer = layers.MLP(4, [6, 5], 2, activation="relu", dropout=0.5).eval()
    x, t = inputs(3, 4)
    for at, dense in enumerate(layer.layers):
        t = F.linear(t, torch.tensor(dense.weight.numpy()), torch.tensor(dense.bias.numpy()))
        t = F.relu(t) if at < 2 else t
    assert close(layer(x), t)
    assert [d.weight.shape for d in layers.MLP(4).layers] == [(16, 4), (4, 16)]
    assert layers.MLP(4, [], 2)(x).shape == (3, 2)


def test_dropout_only_in_training(backend: str) -> None:
    ops.random.set_seed(0)
    layer = layers.Dropout(0.25)
    x = ops.ones((100, 100))
    y = layer(x)
    assert abs(float((y == 0).astype("float32").mean()) - 0.25) < 0.02
    assert abs(float(y.mean()) - 1.0) < 0.03
    assert layer.eval()(x) is x


def test_activations_of_layers(backend: str) -> None:
    x = ops.random.normal((2, 3), seed=0)
    ops.random.set_seed(1)
    plain = layers.Dense(3, 3)
    by_name = layers.Dense(3, 3, activation="relu")
    by_name.load_state_dict(plain.state_dict())
    assert ops.allclose(by_name(x), ops.relu(plain(x)))
    by_config = layers.Dense(3, 3, activation={"type": "leaky_relu", "negative_slope": 0.3})
    by_config.load_state_dict(plain.state_dict())
    assert ops.allclose(by_config(x), ops.leaky_relu(plain(x), 0.3))


@pytest.mark.parametrize(
    ("make", "shape", "message"),
    [
        (lambda: layers.Dense(5, 3), (2, 4), r"Dense: expected 5 features along axis -1.*\(2, 4\)"),
        (lambda: layers.LayerNorm(5), (2, 4), "LayerNorm: expected 5 features"),
        (lambda: layers.RMSNorm(5), (), "RMSNorm: expected 5 features"),
        (
            lambda: layers.BatchNorm(5, axis=1),
            (2, 4, 5),
            "BatchNorm: expected 5 features along axis 1",
        ),
        (lambda: layers.GroupNorm(1, 5), (2, 4, 5), "GroupNorm: expected 5 features along axis 1"),
        (lambda: layers.MLP(5), (2, 4), "Dense: expected 5 features"),
    ],
)
def test_wrong_features_name_the_layer(make, shape, message: str, backend: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()(ops.ones(shape))


def test_group_norm_requires_divisible_features() -> None:
    with pytest.raises(ValueError, match=r"features \(5\) must be divisible by num_groups \(2\)"):
        layers.GroupNorm(2, 5)


def test_biases_and_scales_have_no_weight_decay() -> None:
    model = nn.Sequential(layers.Dense(2, 2), layers.LayerNorm(2), layers.BatchNorm(2))
    assert [name for name, p in model.named_parameters() if p.decay] == ["0.weight"]
