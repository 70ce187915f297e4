"""Tests of gated linear units and the feed-forward layer against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ember_ml import nn, ops, registry
from ember_ml.nn.layers.channel_mixing.gated_linear import (
    GLU,
    FeedForward,
    GatedLinear,
    GeGLU,
    ReGLU,
    SwiGLU,
    inner_size,
)

GATES = [
    (GLU, torch.sigmoid),
    (SwiGLU, F.silu),
    (GeGLU, F.gelu),
    (ReGLU, F.relu),
    (lambda features, **options: GatedLinear(features, activation="tanh", **options), torch.tanh),
]


def compare(layer: nn.Module, reference, shape: tuple[int, ...]) -> None:
    """Compare outputs and gradients with random weights."""
    for at, parameter in enumerate(layer.parameters()):
        parameter.assign(ops.random.normal(parameter.shape, 0.0, 0.5, seed=at))
    theirs = {
        name: torch.tensor(value.numpy(), requires_grad=True)
        for name, value in layer.named_parameters()
    }
    x = ops.random.normal(shape, seed=9)
    weights = ops.random.normal(shape, seed=10)
    expected = reference(torch.tensor(x.numpy()), theirs)
    (expected * torch.tensor(weights.numpy())).sum().backward()
    assert np.allclose(layer(x).numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-4)
    _, grads = nn.value_and_grad(layer, lambda: (layer(x) * weights).sum())()
    for name, grad in grads.items():
        assert np.allclose(grad.numpy(), theirs[name].grad.numpy(), rtol=1e-3, atol=1e-3), name


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("make", "gate"), GATES)
def test_gated(make, gate, bias: bool, backend: str) -> None:
    def reference(x, p):
        first, second = F.linear(x, p["expand.weight"], p.get("expand.bias")).chunk(2, dim=-1)
        return F.linear(gate(first) * second, p["reduce.weight"], p.get("reduce.bias"))

    compare(make(6, inner_features=5, bias=bias), reference, (2, 3, 6))


def test_feed_forward(backend: str) -> None:
    def reference(x, p):
        inner = F.gelu(F.linear(x, p["expand.weight"]), approximate="tanh")
        return F.linear(inner, p["reduce.weight"])

    compare(FeedForward(6), reference, (4, 6))


def test_parameter_counts_of_mad() -> None:
    assert FeedForward(128).num_parameters() == 131_072
    assert SwiGLU(128).num_parameters() == 135_168
    assert [inner_size(features) for features in (6, 12, 96, 128, 130)] == [16, 32, 256, 352, 352]


def test_halves_are_initialized_like_separate_matrices() -> None:
    ops.random.set_seed(0)
    layer = SwiGLU(96)
    deviation = float(layer.expand.weight.numpy().std())
    assert abs(deviation - np.sqrt(2 / (96 + 256))) < 0.02 * deviation


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("glu", GLU),
        ("swiglu", SwiGLU),
        ("geglu", GeGLU),
        ("reglu", ReGLU),
        ("gated_mlp", GatedLinear),
        ("mad-mlp", FeedForward),
    ],
)
def test_names(name: str, cls: type) -> None:
    layer = registry.create(f"layers/{name}", 8)
    assert type(layer) is cls
    assert type(type(layer.config).from_yaml(layer.config.to_yaml()).create()) is cls


@pytest.mark.parametrize("cls", [SwiGLU, FeedForward])
def test_dropout_only_in_training(cls, backend: str) -> None:
    layer = cls(8, dropout=0.9)
    x = ops.random.normal((4, 8), seed=0)
    trained, used = layer(x).numpy(), layer.eval()(x).numpy()
    assert np.abs(trained - used).max() > 1e-3
    assert np.array_equal(used, layer(x).numpy())


@pytest.mark.parametrize("cls", [GeGLU, FeedForward])
def test_errors_name_the_layer(cls, backend: str) -> None:
    with pytest.raises(ValueError, match=rf"{cls.__name__}: expected 8 features.*\(2, 7\)"):
        cls(8)(ops.ones((2, 7)))
    with pytest.raises(ValueError, match=rf"{cls.__name__}.*inner_features"):
        cls(8, inner_features=0)
